# The front door: one command for each thing a user or contributor does. `make` alone lists them.
# Everything is built under build/<preset>; CMakePresets.json says with which settings.
.DEFAULT_GOAL := help
.SUFFIXES:

JOBS ?= $(shell nproc)
# wheel: prebuilt, there in seconds. lts: with long-term support, linked into the worker, built once
# for each user in about ten minutes; its builds stand in build/lts-*.
ENGINE ?= wheel
export ENGINE
kind := $(if $(filter lts,$(ENGINE)),lts-)
PREFIX ?= /usr/local
export DESTDIR ?=

# Problems still show: they go to the other stream.
configure = cmake --preset $(1) >/dev/null
build = cmake --build --preset $(1) --parallel $(JOBS)
# The thread sanitizer wants its address ranges free, which address randomisation may take.
no_aslr := $(shell setarch -R true 2>/dev/null && echo setarch -R)

.PHONY: help
help: ## list these commands
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-10s %s\n", $$1, $$2 }' Makefile

.PHONY: run
run: release-build ## build and demonstrate: a sandboxed program renders a picture
	@scripts/demo.sh build/$(kind)release

.PHONY: test
test: build ## build with sanitizers and run all tests and lints
	@$(call configure,$(kind)tsan)
	$(no_aslr) $(call build,$(kind)tsan)
	$(no_aslr) ctest --preset $(kind)tsan
	ctest --preset $(kind)dev

.PHONY: soak
soak: build ## the exhaustive variants of tests that otherwise take a selection
	BH_FAULTS=all BH_KILLS=all ctest --preset dev -R '^(Faults|KilledAtByte)\.'

.PHONY: build
build: setup-test ## compile everything in build/dev (Debug, sanitizers)
	@$(call configure,$(kind)dev)
	$(call build,$(kind)dev)

.PHONY: release-build
release-build: setup-run
	@$(call configure,$(kind)release)
	$(call build,$(kind)release)

.PHONY: guest-abi
guest-abi: ## write the guest contract's C header and document anew
	$(call configure,$(kind)dev)
	cmake --build build/$(kind)dev --target guest-abi

.PHONY: lint
lint: build ## check formatting and house rules; clang-tidy on changed files
	python3 tools/tidy.py
	tools/format.sh --check
	tools/run_clang_tidy.sh build/$(kind)dev

.PHONY: currency
currency: ## check that the pinned engines are supported and free of known holes
	@python3 tools/currency.py

.PHONY: format
format: setup-test ## rewrite the sources with clang-format
	tools/format.sh

.PHONY: clang
clang: ## the tests once more, built by the second compiler
	@scripts/setup.sh clang
	@$(call configure,clang)
	$(call build,clang)
	ctest --preset clang

SECONDS ?= 60
.PHONY: fuzz
fuzz: ## feed each parser of hostile input for SECONDS=60
	@scripts/setup.sh clang
	@$(call configure,fuzz)
	$(call build,fuzz)
	scripts/fuzz.sh build/fuzz "$(SECONDS)" $(TARGET)

.PHONY: bench
bench: ## measure, as ratios within one run
	@scripts/setup.sh bench
	@scripts/setup.sh guests
	@$(call configure,$(kind)bench)
	$(call build,$(kind)bench)
	scripts/bench.sh build/$(kind)bench

.PHONY: install
install: release-build ## install under $(DESTDIR)$(PREFIX)
	cmake --install build/$(kind)release --prefix "$(PREFIX)"

.PHONY: release
release: release-build ## pack build/bulkhead-VERSION-linux-ARCH.tar.gz
	scripts/pack_release.sh build/$(kind)release

.PHONY: clean
clean: ## remove what was built; keep what was downloaded
	rm -rf build/$(kind)dev build/$(kind)tsan build/$(kind)release build/$(kind)bench build/clang build/demo

.PHONY: setup-run setup-test
setup-run:
	@scripts/setup.sh run

setup-test:
	@scripts/setup.sh test
	@scripts/setup.sh guests
