// Text that came from outside is cut on character boundaries and shown without control characters.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace bulkhead {

// At most `bytes_max` bytes of `text`, never splitting a UTF-8 character.
std::string_view CutUtf8(std::string_view text, std::size_t bytes_max);

// Valid UTF-8: each invalid byte becomes U+FFFD.
std::string ToValidUtf8(std::string_view text);

// For messages: 'text' in single quotes, control characters and invalid bytes as \xNN, ' and
// \ escaped.
std::string Quoted(std::string_view text);

// For terminals: valid UTF-8 in which every control character but \n and \t is shown as \xNN.
std::string Printable(std::string_view text);

std::string ToHex(std::span<const std::uint8_t> bytes);

}  // namespace bulkhead
