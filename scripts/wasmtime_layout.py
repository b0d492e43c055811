"""Assembles a Wasmtime C API in the official layout (include/, lib/, LICENSE) from two packages.

usage: wasmtime_layout.py WHEEL CRATE DESTINATION

The wheel holds the shared library, the crate the headers of the same version. The caller has
verified both files. The headers want to know with which features the library was built; what a
released library exports tells, since each feature comes with functions of its own.
"""

import pathlib
import re
import subprocess
import sys
import tarfile
import zipfile

LIBRARY = "/_libwasmtime.so"
LICENSE = "/licenses/LICENSE"
CONF_TEMPLATE = "wasmtime/conf.h.in"

# Feature macro -> a function that a library has only with that feature. A macro that is not here
# guards no declaration and stays undefined.
FEATURE_SYMBOLS = {
    "PROFILING": "wasmtime_guestprofiler_new",
    "WAT": "wasmtime_wat2wasm",
    "CACHE": "wasmtime_config_cache_config_load",
    "PARALLEL_COMPILATION": "wasmtime_config_parallel_compilation_set",
    "WASI": "wasi_config_new",
    "WASI_HTTP": "wasmtime_context_set_wasi_http",
    "THREADS": "wasmtime_sharedmemory_new",
    "GC": "wasmtime_anyref_clone",
    "ASYNC": "wasmtime_call_future_poll",
    "CRANELIFT": "wasmtime_config_cranelift_opt_level_set",
    "WINCH": "wasmtime_config_strategy_set",
    "POOLING_ALLOCATOR": "wasmtime_pooling_allocation_config_new",
    "COMPONENT_MODEL": "wasmtime_component_new",
    "COMPONENT_MODEL_ASYNC": "wasmtime_component_func_call_async",
}


def extract_member(wheel: pathlib.Path, suffix: str, target: pathlib.Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = [name for name in archive.namelist() if name.endswith(suffix)]
        if len(names) != 1:
            sys.exit(f"{wheel.name}: expected one file like *{suffix}, found {names}")
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(archive.read(names[0]))


def extract_headers(crate: pathlib.Path, destination: pathlib.Path) -> None:
    prefix = f"{crate.stem}/include/"
    with tarfile.open(crate) as archive:
        for member in archive:
            if not member.isfile() or not member.name.startswith(prefix):
                continue
            target = destination / member.name.removeprefix(prefix)
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(archive.extractfile(member).read())


def exported_symbols(library: pathlib.Path) -> set[str]:
    listing = subprocess.run(
        ["nm", "--dynamic", "--defined-only", "--format=just-symbols", library],
        check=True, capture_output=True, text=True)
    return set(listing.stdout.split())


def configure(template: str, symbols: set[str]) -> str:
    def define(match: re.Match) -> str:
        enabled = FEATURE_SYMBOLS.get(match[1]) in symbols
        return f"#define WASMTIME_FEATURE_{match[1]}" if enabled else f"/* no {match[1]} */"

    return re.sub(r"^#cmakedefine WASMTIME_FEATURE_(\w+)$", define, template, flags=re.MULTILINE)


def main() -> None:
    wheel, crate, destination = map(pathlib.Path, sys.argv[1:])
    library = destination / "lib" / "libwasmtime.so"
    extract_member(wheel, LIBRARY, library)
    library.chmod(0o755)
    extract_member(wheel, LICENSE, destination / "LICENSE")
    extract_headers(crate, destination / "include")
    template = destination / "include" / CONF_TEMPLATE
    template.with_suffix("").write_text(configure(template.read_text(), exported_symbols(library)))
    template.unlink()


if __name__ == "__main__":
    main()
