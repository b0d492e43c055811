#include "base/strings.h"

#include <fmt/core.h>

namespace bulkhead {
namespace {

// Well-formed characters of more than one byte, by their first byte (Unicode 15, table 3-7); bytes
// after the second are 80..BF.
struct Lead {
  unsigned first_low;
  unsigned first_high;
  std::size_t length;
  unsigned second_low;
  unsigned second_high;
};

constexpr Lead kLeads[] = {
    {0xC2, 0xDF, 2, 0x80, 0xBF}, {0xE0, 0xE0, 3, 0xA0, 0xBF}, {0xE1, 0xEC, 3, 0x80, 0xBF},
    {0xED, 0xED, 3, 0x80, 0x9F}, {0xEE, 0xEF, 3, 0x80, 0xBF}, {0xF0, 0xF0, 4, 0x90, 0xBF},
    {0xF1, 0xF3, 4, 0x80, 0xBF}, {0xF4, 0xF4, 4, 0x80, 0x8F},
};

unsigned ByteAt(std::string_view text, std::size_t i) {
  return static_cast<unsigned char>(text[i]);
}

bool Continues(std::string_view text, const Lead& lead) {
  if (text.size() < lead.length || ByteAt(text, 1) < lead.second_low ||
      ByteAt(text, 1) > lead.second_high) {
    return false;
  }
  for (std::size_t i = 2; i < lead.length; ++i) {
    if ((ByteAt(text, i) & 0xC0U) != 0x80U) {
      return false;
    }
  }
  return true;
}

// Length of the valid UTF-8 character at the start of `text`, 0 if there is none.
std::size_t CharacterLength(std::string_view text) {
  const unsigned first = ByteAt(text, 0);
  if (first < 0x80) {
    return 1;
  }
  for (const Lead& lead : kLeads) {
    if (first >= lead.first_low && first <= lead.first_high) {
      return Continues(text, lead) ? lead.length : 0;
    }
  }
  return 0;
}

bool IsControl(std::string_view character) {
  const auto first = static_cast<unsigned char>(character[0]);
  if (character.size() == 1) {
    return first < 0x20 || first == 0x7F;
  }
  return character.size() == 2 && first == 0xC2 && static_cast<unsigned char>(character[1]) < 0xA0;
}

std::string Escape(std::string_view text, std::string_view kept_controls,
                   std::string_view escaped) {
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    const std::size_t length = CharacterLength(text);
    const std::string_view character = text.substr(0, length == 0 ? 1 : length);
    const bool kept =
        character.size() == 1 && kept_controls.find(character[0]) != std::string_view::npos;
    if (length == 0 || (IsControl(character) && !kept)) {
      for (const char c : character) {
        out += fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
      }
    } else {
      if (character.size() == 1 && escaped.find(character[0]) != std::string_view::npos) {
        out += '\\';
      }
      out += character;
    }
    text.remove_prefix(character.size());
  }
  return out;
}

}  // namespace

std::string_view CutUtf8(std::string_view text, std::size_t bytes_max) {
  if (text.size() <= bytes_max) {
    return text;
  }
  std::size_t end = bytes_max;
  // Step back over continuation bytes; at most three belong to a character.
  for (int back = 0; back < 3 && end > 0; ++back) {
    if ((static_cast<unsigned char>(text[end]) & 0xC0U) != 0x80U) {
      break;
    }
    --end;
  }
  return text.substr(0, end);
}

std::string ToValidUtf8(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    const std::size_t length = CharacterLength(text);
    if (length == 0) {
      out += "\xEF\xBF\xBD";
      text.remove_prefix(1);
    } else {
      out += text.substr(0, length);
      text.remove_prefix(length);
    }
  }
  return out;
}

std::string Quoted(std::string_view text) {
  return "'" + Escape(text, "", "'\\") + "'";
}

std::string Printable(std::string_view text) {
  return Escape(text, "\n\t", "");
}

std::string ToHex(std::span<const std::uint8_t> bytes) {
  std::string out;
  out.reserve(bytes.size() * 2);
  for (const std::uint8_t byte : bytes) {
    out += fmt::format("{:02x}", byte);
  }
  return out;
}

}  // namespace bulkhead
