#include "admission/wasm_segments.h"

#include <fmt/core.h>

#include "admission/wasm_types.h"

namespace bulkhead::admission {
namespace {

// Instructions that may stand in a constant expression.
constexpr std::uint8_t kEnd = 0x0B;
constexpr std::uint8_t kGlobalGet = 0x23;
constexpr std::uint8_t kI32Const = 0x41;
constexpr std::uint8_t kI64Const = 0x42;
constexpr std::uint8_t kF32Const = 0x43;
constexpr std::uint8_t kF64Const = 0x44;
constexpr std::uint8_t kI32Add = 0x6A;
constexpr std::uint8_t kI32Sub = 0x6B;
constexpr std::uint8_t kI32Mul = 0x6C;
constexpr std::uint8_t kI64Add = 0x7C;
constexpr std::uint8_t kI64Sub = 0x7D;
constexpr std::uint8_t kI64Mul = 0x7E;
constexpr std::uint8_t kRefNull = 0xD0;
constexpr std::uint8_t kRefFunc = 0xD2;
constexpr std::uint8_t kGcPrefix = 0xFB;
constexpr std::uint8_t kVectorPrefix = 0xFD;

// Behind kGcPrefix.
constexpr std::uint32_t kStructNew = 0;
constexpr std::uint32_t kStructNewDefault = 1;
constexpr std::uint32_t kArrayNew = 6;
constexpr std::uint32_t kArrayNewDefault = 7;
constexpr std::uint32_t kArrayNewFixed = 8;
constexpr std::uint32_t kAnyConvertExtern = 26;
constexpr std::uint32_t kExternConvertAny = 27;
constexpr std::uint32_t kRefI31 = 28;
// Behind kVectorPrefix.
constexpr std::uint32_t kV128Const = 12;

// Flags of an element segment.
constexpr std::uint32_t kElementPassive = 0x01;
constexpr std::uint32_t kElementTableOrDeclared = 0x02;  // a table index if active, else declared
constexpr std::uint32_t kElementExpressions = 0x04;
constexpr std::uint32_t kElementFlags = 0x07;

// Kinds of a data segment.
constexpr std::uint32_t kDataPassive = 1;
constexpr std::uint32_t kDataActiveInMemory = 2;

constexpr std::uint32_t kNoBound = 0xFFFF'FFFF;  // none but the bytes of the section

// A function body has at least a size, a count of locals and an end; an element or data segment a
// flag and a count.
constexpr CountBound kBodies = {"function bodies", "too-many-functions", kNoBound, 3};
constexpr CountBound kElementSegments = {"element segments", "too-many-element-segments",
                                         kElementSegmentsMax, 2};
constexpr CountBound kElements = {"elements", "too-many-elements", kNoBound};
constexpr CountBound kDataSegments = {"data segments", "too-many-data-segments", kDataSegmentsMax,
                                      2};

Status SkipGcOperands(ByteReader& reader) {
  const ByteReader start = reader;
  switch (BH_TRY(reader.U32("an instruction"))) {
    case kStructNew:
    case kStructNewDefault:
    case kArrayNew:
    case kArrayNewDefault:
      BH_TRY(reader.U32("a type index"));
      return {};
    case kArrayNewFixed:
      BH_TRY(reader.U32("a type index"));
      BH_TRY(reader.U32("an array length"));
      return {};
    case kAnyConvertExtern:
    case kExternConvertAny:
    case kRefI31:
      return {};
    default:
      return start.Unexpected("a constant instruction");
  }
}

Status SkipVectorOperands(ByteReader& reader) {
  const ByteReader start = reader;
  if (BH_TRY(reader.U32("an instruction")) != kV128Const) {
    return start.Unexpected("a constant instruction");
  }
  return reader.Skip(16, "a vector constant");
}

// The operands of `opcode`, which `start` stands on.
Status SkipOperands(ByteReader& reader, std::uint8_t opcode, const ByteReader& start) {
  switch (opcode) {
    case kI32Const:
      BH_TRY(reader.Signed(32, "an i32 constant"));
      return {};
    case kI64Const:
      BH_TRY(reader.Signed(64, "an i64 constant"));
      return {};
    case kF32Const:
      return reader.Skip(4, "an f32 constant");
    case kF64Const:
      return reader.Skip(8, "an f64 constant");
    case kGlobalGet:
    case kRefFunc:
      BH_TRY(reader.U32("an index"));
      return {};
    case kRefNull:
      return SkipHeapType(reader);
    case kI32Add:
    case kI32Sub:
    case kI32Mul:
    case kI64Add:
    case kI64Sub:
    case kI64Mul:
      return {};
    case kGcPrefix:
      return SkipGcOperands(reader);
    case kVectorPrefix:
      return SkipVectorOperands(reader);
    default:
      return start.Unexpected("a constant instruction");
  }
}

Status SkipElementKind(ByteReader& reader) {
  const ByteReader start = reader;
  if (BH_TRY(reader.Byte("an element kind")) != 0) {
    return start.Unexpected("element kind 0 (functions)");
  }
  return {};
}

Status SkipElementSegment(ByteReader& reader) {
  const ByteReader start = reader;
  const std::uint32_t flags = BH_TRY(reader.U32("element segment flags"));
  if (flags > kElementFlags) {
    return start.Unexpected("element segment flags of at most 7");
  }
  const bool is_active = (flags & kElementPassive) == 0;
  const bool of_expressions = (flags & kElementExpressions) != 0;
  if (is_active) {
    if ((flags & kElementTableOrDeclared) != 0) {
      BH_TRY(reader.U32("a table index"));
    }
    BH_TRY(SkipExpression(reader));
  }
  // The short active forms, 0 and 4, leave the kind or type out.
  if (!is_active || (flags & kElementTableOrDeclared) != 0) {
    if (of_expressions) {
      BH_TRY(ReadReferenceType(reader));
    } else {
      BH_TRY(SkipElementKind(reader));
    }
  }
  for (std::uint32_t left = BH_TRY(reader.Count(kElements)); left > 0; --left) {
    if (of_expressions) {
      BH_TRY(SkipExpression(reader));
    } else {
      BH_TRY(reader.U32("a function index"));
    }
  }
  return {};
}

Status SkipDataSegment(ByteReader& reader) {
  const ByteReader start = reader;
  const std::uint32_t kind = BH_TRY(reader.U32("a data segment kind"));
  if (kind > kDataActiveInMemory) {
    return start.Unexpected("a data segment kind of at most 2");
  }
  if (kind == kDataActiveInMemory) {
    BH_TRY(reader.U32("a memory index"));
  }
  if (kind != kDataPassive) {
    BH_TRY(SkipExpression(reader));
  }
  const std::uint32_t bytes = BH_TRY(reader.U32("a data segment size"));
  return reader.Skip(bytes, "a data segment");
}

}  // namespace

Status SkipExpression(ByteReader& reader) {
  for (;;) {
    const ByteReader start = reader;
    const std::uint8_t opcode = BH_TRY(reader.Byte("a constant expression"));
    if (opcode == kEnd) {
      return {};
    }
    BH_TRY(SkipOperands(reader, opcode, start));
  }
}

Status ReadCode(ByteReader& section, std::uint32_t functions) {
  const std::size_t start = section.offset();
  const std::uint32_t bodies = BH_TRY(section.Count(kBodies));
  if (bodies != functions) {
    return InvalidBinary(start, fmt::format("{} function bodies", functions),
                         std::to_string(bodies));
  }
  for (std::uint32_t left = bodies; left > 0; --left) {
    const std::uint32_t bytes = BH_TRY(section.U32("a function body size"));
    BH_TRY(section.Skip(bytes, "a function body"));
  }
  return {};
}

Status ReadElements(ByteReader& section) {
  for (std::uint32_t left = BH_TRY(section.Count(kElementSegments)); left > 0; --left) {
    BH_TRY(SkipElementSegment(section));
  }
  return {};
}

Result<std::uint32_t> ReadData(ByteReader& section) {
  const std::uint32_t segments = BH_TRY(section.Count(kDataSegments));
  for (std::uint32_t left = segments; left > 0; --left) {
    BH_TRY(SkipDataSegment(section));
  }
  return segments;
}

}  // namespace bulkhead::admission
