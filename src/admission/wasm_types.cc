#include "admission/wasm_types.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <string_view>

namespace bulkhead::admission {
namespace {

// Codes of the binary format.
constexpr std::uint8_t kTypeRecursive = 0x4E;
constexpr std::uint8_t kTypeSubFinal = 0x4F;
constexpr std::uint8_t kTypeSub = 0x50;
constexpr std::uint8_t kTypeArray = 0x5E;
constexpr std::uint8_t kTypeStruct = 0x5F;
constexpr std::uint8_t kTypeFunction = 0x60;
constexpr std::uint8_t kRefNull = 0x63;
constexpr std::uint8_t kRef = 0x64;
constexpr std::uint8_t kPackedI16 = 0x77;
constexpr std::uint8_t kPackedI8 = 0x78;

constexpr std::uint8_t kAbstractFirst = 0x68;
// From kAbstractFirst on: the abstract heap types, which are also the short forms of nullable
// references.
constexpr std::array<std::string_view, 14> kAbstractHeapTypes = {
    "cont",   "exn",  "array", "struct",   "i31",    "eq",    "any",
    "extern", "func", "none",  "noextern", "nofunc", "noexn", "nocont"};

constexpr std::uint8_t kNumberFirst = 0x7B;
constexpr std::array<std::string_view, 5> kNumberTypes = {"v128", "f64", "f32", "i64", "i32"};

// Limits flags of memories and tables.
constexpr std::uint8_t kHasMaximum = 0x01;
constexpr std::uint8_t kShared = 0x02;
constexpr std::uint8_t kIs64 = 0x04;
constexpr std::uint8_t kCustomPageSize = 0x08;

constexpr CountBound kTypes = {"types", "too-many-types", kTypesMax};
constexpr CountBound kParameters = {"parameters", "too-many-parameters", kParametersMax};
constexpr CountBound kResults = {"results", "too-many-results", kResultsMax};
constexpr CountBound kFields = {"fields", "too-many-fields", kFieldsMax, 2};
constexpr CountBound kSupertypes = {"supertypes", "too-many-supertypes", kSupertypesMax};

// Parameters or results shown in a message.
constexpr std::uint32_t kShownMax = 16;

bool IsAbstractHeapType(int code) {
  return code >= kAbstractFirst &&
         code < kAbstractFirst + static_cast<int>(kAbstractHeapTypes.size());
}

bool IsNumberType(int code) {
  return code >= kNumberFirst && code < kNumberFirst + static_cast<int>(kNumberTypes.size());
}

// A negative code for an abstract heap type, else a type index.
Result<std::int64_t> ReadHeapType(ByteReader& reader) {
  if (IsAbstractHeapType(reader.Peek())) {
    return std::int64_t{BH_TRY(reader.Byte("a heap type"))} - 0x80;
  }
  const ByteReader start = reader;
  const std::int64_t index = BH_TRY(reader.Signed(33, "a heap type"));
  if (index < 0) {
    return start.Unexpected("a heap type");
  }
  return index;
}

Status SkipField(ByteReader& reader) {
  const int code = reader.Peek();
  if (code == kPackedI8 || code == kPackedI16) {
    BH_TRY(reader.Byte("a storage type"));
  } else {
    BH_TRY(ReadValueType(reader));
  }
  const ByteReader flag = reader;
  if (BH_TRY(reader.Byte("a mutability flag")) > 1) {
    return flag.Unexpected("a mutability flag (0 or 1)");
  }
  return {};
}

Status SkipComposite(ByteReader& reader) {
  const ByteReader start = reader;
  switch (BH_TRY(reader.Byte("a type"))) {
    case kTypeFunction: {
      for (const CountBound& list : {kParameters, kResults}) {
        for (std::uint32_t left = BH_TRY(reader.Count(list)); left > 0; --left) {
          BH_TRY(ReadValueType(reader));
        }
      }
      return {};
    }
    case kTypeStruct: {
      for (std::uint32_t left = BH_TRY(reader.Count(kFields)); left > 0; --left) {
        BH_TRY(SkipField(reader));
      }
      return {};
    }
    case kTypeArray:
      return SkipField(reader);
    default:
      return start.Unexpected("a function, struct or array type");
  }
}

// One type with its supertypes; its index is the number of offsets before.
Status ReadSubtype(ByteReader& reader, std::vector<std::uint32_t>& offsets) {
  if (const int code = reader.Peek(); code == kTypeSub || code == kTypeSubFinal) {
    BH_TRY(reader.Byte("a type"));
    for (std::uint32_t left = BH_TRY(reader.Count(kSupertypes)); left > 0; --left) {
      BH_TRY(reader.U32("a supertype"));
    }
  }
  if (offsets.size() >= kTypesMax) {
    return Refused(kTypes.code, fmt::format("more than {} types", kTypesMax));
  }
  // Modules are far below 4 GiB (module_bytes_max), so an offset fits.
  offsets.push_back(static_cast<std::uint32_t>(reader.offset()));
  return SkipComposite(reader);
}

struct Limits {
  std::uint8_t flags = 0;
  std::uint64_t min = 0;
  std::optional<std::uint64_t> max;
};

Result<Limits> ReadLimits(ByteReader& reader, std::uint8_t flags_allowed) {
  const ByteReader start = reader;
  Limits limits;
  limits.flags = BH_TRY(reader.Byte("limits"));
  if ((limits.flags & ~unsigned{flags_allowed}) != 0) {
    return start.Unexpected("known limits flags");
  }
  const bool wide = (limits.flags & kIs64) != 0;
  const auto read = [&](std::string_view what) -> Result<std::uint64_t> {
    return wide ? reader.U64(what) : Result<std::uint64_t>(BH_TRY(reader.U32(what)));
  };
  limits.min = BH_TRY(read("a minimum"));
  if ((limits.flags & kHasMaximum) != 0) {
    limits.max = BH_TRY(read("a maximum"));
  }
  return limits;
}

std::string ToText(const ValueType& type) {
  if (IsNumberType(type.code)) {
    return std::string(kNumberTypes.at(type.code - kNumberFirst));
  }
  if (IsAbstractHeapType(type.code)) {
    return fmt::format("{}ref", kAbstractHeapTypes.at(type.code - kAbstractFirst));
  }
  const int abstract = static_cast<int>(type.heap) + 0x80;
  const std::string heap =
      type.heap < 0 && IsAbstractHeapType(abstract)
          ? std::string(kAbstractHeapTypes.at(static_cast<std::size_t>(abstract - kAbstractFirst)))
          : std::to_string(type.heap);
  return fmt::format("(ref {}{})", type.code == kRefNull ? "null " : "", heap);
}

// The next list of value types: "i32, i64"; `count` receives how many there are.
Result<std::string> ReadListText(ByteReader& reader, const CountBound& bound,
                                 std::uint32_t& count) {
  count = BH_TRY(reader.Count(bound));
  std::string text;
  for (std::uint32_t i = 0; i < count; ++i) {
    const ValueType type = BH_TRY(ReadValueType(reader));
    if (i < kShownMax) {
      text += (i == 0 ? "" : ", ") + ToText(type);
    }
  }
  if (count > kShownMax) {
    text += fmt::format(", and {} more", count - kShownMax);
  }
  return text;
}

Result<std::string> ReadFunctionText(ByteReader reader) {
  switch (BH_TRY(reader.Byte("a type"))) {
    case kTypeFunction:
      break;
    case kTypeStruct:
      return std::string("a struct type");
    case kTypeArray:
      return std::string("an array type");
    default:
      return std::string("an unknown type");
  }
  std::uint32_t count = 0;
  const std::string parameters = BH_TRY(ReadListText(reader, kParameters, count));
  const std::string results = BH_TRY(ReadListText(reader, kResults, count));
  return count == 1 ? fmt::format("({}) -> {}", parameters, results)
                    : fmt::format("({}) -> ({})", parameters, results);
}

std::string RangeText(std::uint64_t min, std::optional<std::uint64_t> max) {
  return max ? fmt::format("{}..{}", min, *max) : fmt::format("{}..", min);
}

}  // namespace

Result<ValueType> ReadValueType(ByteReader& reader) {
  if (IsNumberType(reader.Peek())) {
    return ValueType{BH_TRY(reader.Byte("a value type")), 0};
  }
  return ReadReferenceType(reader);
}

Result<ValueType> ReadReferenceType(ByteReader& reader) {
  const ByteReader start = reader;
  ValueType type;
  type.code = BH_TRY(reader.Byte("a value type"));
  if (type.code == kRef || type.code == kRefNull) {
    type.heap = BH_TRY(ReadHeapType(reader));
  } else if (!IsAbstractHeapType(type.code)) {
    return start.Unexpected("a value type");
  }
  return type;
}

Status SkipHeapType(ByteReader& reader) {
  BH_TRY(ReadHeapType(reader));
  return {};
}

Result<MemoryType> ReadMemoryType(ByteReader& reader) {
  const std::size_t start = reader.offset();
  const Limits limits = BH_TRY(ReadLimits(reader, kHasMaximum | kShared | kIs64 | kCustomPageSize));
  MemoryType type;
  type.shared = (limits.flags & kShared) != 0;
  type.memory64 = (limits.flags & kIs64) != 0;
  type.pages_min = limits.min;
  type.pages_max = limits.max;
  if ((limits.flags & kCustomPageSize) != 0) {
    type.page_bytes_log2 = BH_TRY(reader.U32("a page size"));
    if (type.page_bytes_log2 > MemoryType::kPageBytesLog2) {
      return InvalidBinary(start, "a page size of at most 64 KiB",
                           fmt::format("2^{} bytes", type.page_bytes_log2));
    }
  }
  // No memory is larger than its address type can reach.
  const unsigned pages_log2 = (type.memory64 ? 64U : 32U) - type.page_bytes_log2;
  const std::uint64_t pages_max =
      pages_log2 < 64 ? std::uint64_t{1} << pages_log2 : ~std::uint64_t{0};
  const std::uint64_t pages = std::max(limits.min, limits.max.value_or(0));
  if (pages > pages_max) {
    return InvalidBinary(start, fmt::format("a memory of at most {} pages", pages_max),
                         std::to_string(pages));
  }
  return type;
}

Result<TableType> ReadTableType(ByteReader& reader) {
  TableType type;
  type.element = BH_TRY(ReadReferenceType(reader));
  const Limits limits = BH_TRY(ReadLimits(reader, kHasMaximum | kIs64));
  type.size_min = limits.min;
  type.size_max = limits.max;
  return type;
}

Result<GlobalType> ReadGlobalType(ByteReader& reader) {
  GlobalType type;
  type.value = BH_TRY(ReadValueType(reader));
  const ByteReader flag = reader;
  const std::uint8_t mutability = BH_TRY(reader.Byte("a mutability flag"));
  if (mutability > 1) {
    return flag.Unexpected("a mutability flag (0 or 1)");
  }
  type.is_mutable = mutability == 1;
  return type;
}

Status ReadTypes(ByteReader& section, std::vector<std::uint32_t>& offsets) {
  for (std::uint32_t left = BH_TRY(section.Count(kTypes)); left > 0; --left) {
    if (section.Peek() != kTypeRecursive) {
      BH_TRY(ReadSubtype(section, offsets));
      continue;
    }
    BH_TRY(section.Byte("a type"));
    for (std::uint32_t members = BH_TRY(section.Count(kTypes)); members > 0; --members) {
      BH_TRY(ReadSubtype(section, offsets));
    }
  }
  return {};
}

std::string FunctionTypeText(ByteReader at_type) {
  return ReadFunctionText(at_type).value_or("an unknown type");
}

std::string ToText(const MemoryType& type) {
  return fmt::format("{} pages{}{}", RangeText(type.pages_min, type.pages_max),
                     type.shared ? ", shared" : "", type.memory64 ? ", 64-bit" : "");
}

std::string ToText(const TableType& type) {
  return fmt::format("{} {}", ToText(type.element), RangeText(type.size_min, type.size_max));
}

std::string ToText(const GlobalType& type) {
  return fmt::format("{}{}", type.is_mutable ? "mut " : "", ToText(type.value));
}

}  // namespace bulkhead::admission
