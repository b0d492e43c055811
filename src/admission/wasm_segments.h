// The sections that carry payload: code, element and data segments, and the constant expressions in
// them. They are framed and counted; nothing is kept. Pure functions, any thread. Failures: see
// byte_reader.h.
#pragma once

#include <bulkhead/result.h>

#include <cstdint>

#include "admission/byte_reader.h"

namespace bulkhead::admission {

// As the engine: what it would refuse anyway is refused here first.
inline constexpr std::uint32_t kElementSegmentsMax = 100'000;
inline constexpr std::uint32_t kDataSegmentsMax = 100'000;

// Skips one constant expression with its end instruction.
Status SkipExpression(ByteReader& reader);

// The whole section must hold exactly `functions` bodies.
Status ReadCode(ByteReader& section, std::uint32_t functions);
Status ReadElements(ByteReader& section);
// Yields the number of segments.
Result<std::uint32_t> ReadData(ByteReader& section);

}  // namespace bulkhead::admission
