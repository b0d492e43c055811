#include "contract/guest_abi_text.h"

#include <fmt/format.h>

#include <algorithm>

#include "contract/guest_abi.h"

namespace bulkhead::contract {
namespace {

constexpr std::string_view kHeaderStart =
    R"(/* The guest contract of the sketch profile in C. Written from src/contract/guest_abi.cc:
 * `make guest-abi`. */
/* clang-format off */
#ifndef BULKHEAD_GUEST_ABI_H
#define BULKHEAD_GUEST_ABI_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

)";

constexpr std::string_view kHeaderEnd = R"(
/* What operation_poll and collect-read answer. */
static inline bh_status bh_packed_status(int64_t packed) { return (bh_status)(packed & 0xff); }
static inline uint64_t bh_packed_value(int64_t packed) { return (uint64_t)packed >> 8; }

#ifdef __cplusplus
}
#endif

#endif
)";

// A comment of lines that fit.
std::string Comment(std::string_view text) {
  constexpr std::size_t kColumns = 92;
  std::string comment = "/* ";
  while (text.size() > kColumns) {
    const std::size_t blank = text.rfind(' ', kColumns);
    comment += fmt::format("{}\n * ", text.substr(0, blank));
    text.remove_prefix(blank + 1);
  }
  return fmt::format("{}{} */\n", comment, text);
}

// "blob-create" -> "BH_BLOB_CREATE".
std::string ConstantName(std::string_view name) {
  std::string constant = "BH_";
  for (const char c : name) {
    constant += c == '-' ? '_' : static_cast<char>(c >= 'a' && c <= 'z' ? c - 'a' + 'A' : c);
  }
  return constant;
}

std::string_view CType(char letter) {
  return letter == 'I' ? "int64_t" : "int32_t";
}

std::string Prototype(const Import& import) {
  std::string name = "bh_" + std::string(import.name);
  std::replace(name.begin(), name.end(), '-', '_');
  const std::size_t colon = import.signature.find(':');
  std::string parameters;
  for (const char letter : import.signature.substr(0, colon)) {
    parameters += parameters.empty() ? "" : ", ";
    parameters += CType(letter);
  }
  const std::string_view result = import.signature.substr(colon + 1);
  return fmt::format(
      "{}__attribute__((import_module(\"{}\"), import_name(\"{}\")))\n{} {}({});\n\n",
      Comment(import.meaning), import.module, import.name,
      result.empty() ? "void" : CType(result.front()), name,
      parameters.empty() ? "void" : parameters);
}

std::string KindsOfHeader() {
  std::string text = "/* What operation_submit understands. */\ntypedef enum {\n";
  for (const OperationKind& kind : OperationKinds()) {
    if (kind.last != kind.number) {  // nothing to call by name
      text += fmt::format("  /* {}: {}, always refused */\n", NumberText(kind), kind.name);
      continue;
    }
    text += fmt::format("  {} = {},{}\n", ConstantName(kind.name), kind.number,
                        kind.available ? "" : " /* always refused */");
  }
  return text + "} bh_kind;\n\n";
}

std::string StatusesOfHeader() {
  std::string text = "/* How an operation is, or ended. */\ntypedef enum {\n";
  for (const StatusByte& status : StatusBytes()) {
    text += fmt::format("  {} = {}, /* {} */\n", ConstantName(status.name), status.number,
                        status.meaning);
  }
  return text + "} bh_status;\n\n";
}

// As a cell of the document's tables, where '|' ends a cell.
std::string Cell(std::string_view text) {
  std::string cell;
  for (const char c : text) {
    cell += c == '|' ? "\\|" : std::string(1, c);
  }
  return cell;
}

std::string FunctionsOfDocument() {
  std::string text = "| module | name | type | meaning |\n|---|---|---|---|\n";
  for (const Import& import : Imports()) {
    text += fmt::format("| `{}` | `{}` | `{}` | {} |\n", import.module, import.name,
                        TypeText(import.signature), Cell(import.meaning));
  }
  return text;
}

std::string OperationsOfDocument() {
  std::string text =
      "| kind | name | arguments | result of submit / of poll |\n|---|---|---|---|\n";
  for (const OperationKind& kind : OperationKinds()) {
    text +=
        fmt::format("| {} | {} | {} | {} |\n", NumberText(kind), kind.name, Cell(kind.arguments),
                    kind.available ? Cell(kind.result) : "always refused: 0");
  }
  text += "\n| status | name | meaning |\n|---|---|---|\n";
  for (const StatusByte& status : StatusBytes()) {
    text += fmt::format("| {} | {} | {} |\n", status.number, status.name, status.meaning);
  }
  return text;
}

std::string NumbersOfDocument() {
  std::string text = "| number | value | of what |\n|---|---|---|\n";
  for (const Number& number : Numbers()) {
    text += fmt::format("| {} | {} | {} |\n", number.name, number.value, number.meaning);
  }
  return text;
}

constexpr std::string_view kDocument =
    R"(# The guest contract of the sketch profile

Written from [src/contract/guest_abi.cc](../src/contract/guest_abi.cc) by `make guest-abi`; the C
header [guest/include/bulkhead_guest_abi.h](../guest/include/bulkhead_guest_abi.h) says the same.

A sketch is a WebAssembly module that can do nothing but what stands here. It carries this contract
with it and is refused unless it matches byte for byte: there is nothing to negotiate, and an old
module fails at once instead of in the middle. `bulkhead guest-pack` writes what a linker does not.

## The module

- It imports one memory, `{}.{}`, shared, of {} to {} pages of 64 KiB, and exports it as `{}`.
- It exports these functions and nothing else:

{}
- It has a start section whose function takes and returns nothing: a linker puts the initialisation
  of the shared memory there.
- Its custom sections are `{}` with the manifest below; `{}` with exactly the features
  {};
  and at most {}, of at most
  {} bytes each.
- It imports any of the functions below, each at most once: at least `kernel_yield`, or
  `operation_submit`, `operation_poll` and `operation_yield` together. `operation_cancel` needs
  these three.

## Functions

{}
An address is checked against the memory's size before anything happens. Other threads may write
the memory meanwhile: what the host reads or stores is torn at most between bytes.

## Operations

`operation_submit` starts one and gives a token; `operation_poll` consumes its result once it has
ended; `operation_yield` waits for that. A token belongs to the thread that got it. Quotas refuse
with 0; a kind that is not in the table traps.

{}
## Numbers

{}
## An example

A whole sketch without the [kit](../guest/README.md), which would save its author most of this; from
the top of the source tree:

{}
## The manifest

```text
{}```
)";

// As the document has it. A test runs it.
constexpr std::string_view kExample = R"(```sh test clang-14 wasm-ld-19
cat > hello.c <<'EOF'
#include <bulkhead_guest_abi.h>

#define EXPORT(name) __attribute__((export_name(name)))

/* The result of an operation, once it has ended. */
static int64_t result(int64_t operation) {
  bh_operation_yield(operation);
  return (int64_t)bh_packed_value(bh_operation_poll(operation));
}

EXPORT("_start") void start(void) {
  static const char text[] = "Hello from a sketch\n";
  const int64_t blob = result(bh_operation_submit(BH_BLOB_CREATE, 0, 0));
  bh_stream_write(blob, (int32_t)(intptr_t)text, sizeof text - 1);
  result(bh_operation_submit(BH_BLOB_SEAL, blob, 0));
  const int64_t output = bh_operation_submit(BH_OUTPUT_GRANT, 0, 0);
  result(bh_operation_submit(BH_OUTPUT_COMMIT, blob, output));
}

EXPORT("__main_void") int32_t main_void(void) { return 0; }
EXPORT("wasi_thread_start") void thread_start(int32_t thread, int32_t argument) {}
EXPORT("bulkhead-run") int32_t run(void) { return 0; }
EOF
clang-14 --target=wasm32-unknown-unknown -matomics -mbulk-memory -O2 -Iguest/include -c hello.c
wasm-ld-19 --no-entry --shared-memory --import-memory --export-memory \
  --initial-memory=$((17 * 65536)) --max-memory=$((16384 * 65536)) hello.o -o linked.wasm
bulkhead guest-pack linked.wasm --output hello.wasm
bulkhead run hello.wasm --output hello.txt
cat hello.txt
```

```text test
bulkhead: completed in ...
Hello from a sketch
```
)";

}  // namespace

std::string GuestHeader() {
  std::string text(kHeaderStart);
  for (const Number& number : Numbers()) {
    text += fmt::format("#define {} {} /* {} */\n", ConstantName(number.name), number.value,
                        number.meaning);
  }
  text += "\n" + KindsOfHeader() + StatusesOfHeader();
  for (const Import& import : Imports()) {
    text += Prototype(import);
  }
  text.pop_back();
  return text + std::string(kHeaderEnd);
}

std::string GuestDocument() {
  std::string exports;
  for (const Export& item : Exports()) {
    exports += fmt::format("  - `{}`, {}: {}\n", item.name, TypeText(item.signature), item.meaning);
  }
  return fmt::format(fmt::runtime(kDocument), kMemoryModule, kMemoryName, kMemoryPagesMin,
                     kMemoryPagesMax, kMemoryExport, exports, kManifestSection, kFeaturesSection,
                     fmt::join(TargetFeatures(), ", "), fmt::join(CustomSections(), ", "),
                     kCustomSectionBytesMax, FunctionsOfDocument(), OperationsOfDocument(),
                     NumbersOfDocument(), kExample, ManifestText());
}

}  // namespace bulkhead::contract
