// The bounded look at a core module: every section is framed and read with strict bounds, function
// bodies are counted but not looked into (the engine validates them, in the worker). Time is
// O(bytes), but for sorting export names; memory is at most about 32 MiB whatever the bytes say,
// because each list has a bound and no list grows ahead of the bytes that fill it. No recursion.
// Pure function, any thread.
#pragma once

#include <bulkhead/result.h>

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "admission/wasm_types.h"

namespace bulkhead::admission {

// Index spaces as wide as the engine's, imports included; what it would refuse anyway is refused
// here first.
inline constexpr std::uint32_t kFunctionsMax = 1'000'000;
inline constexpr std::uint32_t kGlobalsMax = 1'000'000;
inline constexpr std::uint32_t kTagsMax = 1'000'000;
inline constexpr std::uint32_t kTablesMax = 100;
inline constexpr std::uint32_t kMemoriesMax = 100;
// Narrower than the engine's million, because each costs us a record; the largest programs have
// some thousand.
inline constexpr std::uint32_t kImportsMax = 10'000;
inline constexpr std::uint32_t kExportsMax = 100'000;
inline constexpr std::uint32_t kCustomSectionsMax = 10'000;

inline constexpr std::size_t kHeaderBytes = 8;

// In the order of the binary codes.
enum class ExternKind : std::uint8_t { kFunction, kTable, kMemory, kGlobal, kTag };

// "function", "table", "memory", "global", "tag".
std::string_view ExternKindName(ExternKind kind);

struct ScanImport {
  std::string_view module;
  std::string_view name;
  ExternKind kind = ExternKind::kFunction;
  std::uint32_t index = 0;  // in the index space of its kind
};

struct ScanCustomSection {
  std::string_view name;
  std::span<const std::uint8_t> content;  // behind the name
};

struct ScanExport {
  std::string_view name;
  ExternKind kind = ExternKind::kFunction;
  std::uint32_t index = 0;
};

// What was found. Names point into `bytes`, which must outlive this. In each index space the
// imported come first.
struct Scan {
  std::span<const std::uint8_t> bytes;
  std::vector<std::uint32_t> type_offsets;    // where each type begins in `bytes`
  std::vector<std::uint32_t> function_types;  // index into type_offsets
  std::vector<TableType> tables;
  std::vector<MemoryType> memories;
  std::vector<std::uint32_t> global_offsets;  // where each global's type begins in `bytes`
  std::vector<std::uint32_t> tag_types;       // index into type_offsets
  std::vector<ScanImport> imports;
  std::vector<ScanExport> exports;
  std::vector<ScanCustomSection> custom_sections;
  std::uint32_t functions_imported = 0;
  std::uint32_t memories_imported = 0;
  std::optional<std::uint32_t> start_function;
};

// Fails with the refusal code as reason: empty-module, component, unsupported-version,
// invalid-binary, duplicate-section, duplicate-export, name-too-long, too-many-*. `scan` then holds
// what was read before that.
Status ScanModule(std::span<const std::uint8_t> bytes, Scan& scan);

// "(i32) -> i32", "1..2 pages, shared", "funcref 1..", "mut i64".
std::string ExternTypeText(const Scan& scan, ExternKind kind, std::uint32_t index);

}  // namespace bulkhead::admission
