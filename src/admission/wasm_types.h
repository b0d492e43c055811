// Types of a WebAssembly module: reading one of each form, and showing one in a message.
// Reading is flat: no form nests, so there is no recursion. Forms the engine may know are read
// whether or not it has them switched on; the engine decides about those. Pure functions, any
// thread. Failures: see byte_reader.h.
#pragma once

#include <bulkhead/result.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "admission/byte_reader.h"

namespace bulkhead::admission {

// As the engine: what it would refuse anyway is refused here first.
inline constexpr std::uint32_t kTypesMax = 1'000'000;
inline constexpr std::uint32_t kParametersMax = 1'000;
inline constexpr std::uint32_t kResultsMax = 1'000;
inline constexpr std::uint32_t kFieldsMax = 10'000;
inline constexpr std::uint32_t kSupertypesMax = 1;

// A number, vector or reference type; also the type of a struct field when packed.
struct ValueType {
  std::uint8_t code = 0;  // the binary code; 0x63 and 0x64 are references to `heap`
  std::int64_t heap = 0;  // a type index, or a negative code
};

struct MemoryType {
  static constexpr std::uint32_t kPageBytesLog2 = 16;

  bool shared = false;
  bool memory64 = false;
  std::uint64_t pages_min = 0;
  std::optional<std::uint64_t> pages_max;
  std::uint32_t page_bytes_log2 = kPageBytesLog2;
};

struct TableType {
  ValueType element;
  std::uint64_t size_min = 0;
  std::optional<std::uint64_t> size_max;
};

struct GlobalType {
  ValueType value;
  bool is_mutable = false;
};

Result<ValueType> ReadValueType(ByteReader& reader);
// As ReadValueType, references only.
Result<ValueType> ReadReferenceType(ByteReader& reader);
// As ReadValueType, any heap type: the operand of ref.null.
Status SkipHeapType(ByteReader& reader);
Result<MemoryType> ReadMemoryType(ByteReader& reader);
Result<TableType> ReadTableType(ByteReader& reader);
Result<GlobalType> ReadGlobalType(ByteReader& reader);

// Reads the whole type section. `offsets` receives, per type index, where its composite type
// (function, struct, array) begins in the module.
Status ReadTypes(ByteReader& section, std::vector<std::uint32_t>& offsets);

// "(i32, i64) -> i32", "() -> ()", "(f32) -> (i32, i32)"; long lists are cut. What is no function
// is named.
std::string FunctionTypeText(ByteReader at_type);
std::string ToText(const MemoryType& type);
std::string ToText(const TableType& type);
std::string ToText(const GlobalType& type);

}  // namespace bulkhead::admission
