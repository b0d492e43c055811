#include "cli/units.h"

#include <fmt/core.h>

#include <array>
#include <limits>
#include <optional>
#include <span>

#include "base/strings.h"

namespace bulkhead::cli {
namespace {

// Wide enough for every 64-bit product and sum below.
__extension__ using Wide = unsigned __int128;

// Digits that can matter: beyond them a fraction of an hour is below one nanosecond.
constexpr std::size_t kFractionDigitsMax = 13;

constexpr std::size_t kShownBytesMax = 64;  // of a bad value in a message

struct Unit {
  std::string_view name;
  std::uint64_t factor;
};

constexpr std::array<Unit, 6> kDurationUnits{{{"ns", 1},
                                              {"us", 1'000},
                                              {"ms", 1'000'000},
                                              {"s", 1'000'000'000},
                                              {"m", 60'000'000'000},
                                              {"h", 3'600'000'000'000}}};

constexpr std::array<Unit, 9> kSizeUnits{{{"b", 1},
                                          {"kib", 1ULL << 10U},
                                          {"mib", 1ULL << 20U},
                                          {"gib", 1ULL << 30U},
                                          {"tib", 1ULL << 40U},
                                          {"kb", 1'000},
                                          {"mb", 1'000'000},
                                          {"tb", 1'000'000'000'000},
                                          {"gb", 1'000'000'000}}};

constexpr std::string_view kDurationForms = "a duration such as 500ms, 1.5s, 2m or 1h";
constexpr std::string_view kSizeForms = "a size such as 512B, 64KiB, 256MiB or 2GB";
constexpr std::string_view kCountForms = "a whole number such as 1000, 1_000_000 or 1e9";

bool IsDigit(char c) {
  return c >= '0' && c <= '9';
}

std::string Shown(std::string_view text) {
  return Quoted(CutUtf8(text, kShownBytesMax));
}

tl::unexpected<Error> Refuse(std::string_view text, std::string_view why, std::string_view forms) {
  return Fail(ErrorCode::kInvalidArgument, fmt::format("{} {}; write {}", Shown(text), why, forms));
}

std::string_view TakeDigits(std::string_view& text) {
  std::size_t length = 0;
  while (length < text.size() && IsDigit(text[length])) {
    ++length;
  }
  const std::string_view digits = text.substr(0, length);
  text.remove_prefix(length);
  return digits;
}

// The digits as a number, nullopt above 64 bits.
std::optional<std::uint64_t> ToNumber(std::string_view digits) {
  Wide value = 0;
  for (const char c : digits) {
    value = value * 10 + static_cast<unsigned>(c - '0');
    if (value > std::numeric_limits<std::uint64_t>::max()) {
      return std::nullopt;
    }
  }
  return static_cast<std::uint64_t>(value);
}

std::string LowerCase(std::string_view text) {
  std::string lower(text);
  for (char& c : lower) {
    c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  }
  return lower;
}

const Unit* FindUnit(std::span<const Unit> units, std::string_view name) {
  for (const Unit& unit : units) {
    if (unit.name == name) {
      return &unit;
    }
  }
  return nullptr;
}

// DIGITS [ "." DIGITS ] UNIT as a multiple of the smallest unit.
Result<std::uint64_t> ParseScaled(std::string_view text, std::span<const Unit> units, bool any_case,
                                  std::string_view forms) {
  std::string_view rest = text;
  const std::string_view whole = TakeDigits(rest);
  std::string_view fraction;
  if (!whole.empty() && rest.starts_with('.')) {
    rest.remove_prefix(1);
    fraction = TakeDigits(rest);
    if (fraction.empty()) {
      return Refuse(text, "has no digit after the point", forms);
    }
  }
  if (whole.empty()) {
    return Refuse(text, "is not a number with a unit", forms);
  }
  if (rest.empty()) {
    return Refuse(text, "has no unit", forms);
  }
  const Unit* unit = FindUnit(units, any_case ? LowerCase(rest) : std::string(rest));
  if (unit == nullptr) {
    return Refuse(text, fmt::format("has an unknown unit {}", Shown(rest)), forms);
  }
  fraction = fraction.substr(0, kFractionDigitsMax);
  Wide divisor = 1;
  for (std::size_t i = 0; i < fraction.size(); ++i) {
    divisor *= 10;
  }
  const auto whole_number = ToNumber(whole);
  const Wide value = Wide{whole_number.value_or(0)} * unit->factor +
                     Wide{ToNumber(fraction).value_or(0)} * unit->factor / divisor;
  if (!whole_number || value > std::numeric_limits<std::uint64_t>::max()) {
    return Refuse(text, "is too large", forms);
  }
  return static_cast<std::uint64_t>(value);
}

}  // namespace

Result<std::chrono::nanoseconds> ParseDuration(std::string_view text) {
  const std::uint64_t count = BH_TRY(ParseScaled(text, kDurationUnits, false, kDurationForms));
  if (count > static_cast<std::uint64_t>(std::chrono::nanoseconds::max().count())) {
    return Refuse(text, "is too large", kDurationForms);
  }
  return std::chrono::nanoseconds(static_cast<std::int64_t>(count));
}

Result<std::uint64_t> ParseSize(std::string_view text) {
  return ParseScaled(text, kSizeUnits, true, kSizeForms);
}

Result<std::uint64_t> ParseCount(std::string_view text) {
  std::string digits;
  std::string_view rest = text;
  for (;;) {
    const std::string_view part = TakeDigits(rest);
    if (part.empty()) {
      return Refuse(text, "is not a whole number", kCountForms);
    }
    digits += part;
    if (!rest.starts_with('_')) {
      break;
    }
    rest.remove_prefix(1);
  }
  if (rest.starts_with('e') || rest.starts_with('E')) {
    rest.remove_prefix(1);
    const std::string_view exponent_digits = TakeDigits(rest);
    if (exponent_digits.empty()) {
      return Refuse(text, "is not a whole number", kCountForms);
    }
    const auto exponent = ToNumber(exponent_digits);
    constexpr std::uint64_t kExponentMax = 19;  // 10^19 is the largest power of ten in 64 bits
    if (!exponent || *exponent > kExponentMax) {
      return Refuse(text, "is too large", kCountForms);
    }
    digits.append(*exponent, '0');
  }
  if (!rest.empty()) {
    return Refuse(text, "is not a whole number", kCountForms);
  }
  const auto value = ToNumber(digits);
  if (!value) {
    return Refuse(text, "is too large", kCountForms);
  }
  return *value;
}

std::string FormatDuration(std::chrono::microseconds duration) {
  using std::chrono::duration_cast;
  const std::int64_t ms = duration_cast<std::chrono::milliseconds>(duration).count();
  constexpr std::int64_t kSecond = 1'000;
  constexpr std::int64_t kMinute = 60 * kSecond;
  if (ms < kSecond) {
    return fmt::format("{} ms", ms);
  }
  if (ms < kMinute) {
    return fmt::format("{}.{} s", ms / kSecond, ms % kSecond / 100);
  }
  return fmt::format("{} min {} s", ms / kMinute, ms % kMinute / kSecond);
}

std::string FormatSize(std::uint64_t bytes) {
  if (bytes < 1024) {
    return fmt::format("{} {}", bytes, bytes == 1 ? "byte" : "bytes");
  }
  constexpr std::array<std::string_view, 6> kNames{"KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
  std::size_t index = 0;
  auto value = static_cast<double>(bytes) / 1024;
  while (value >= 1024 && index + 1 < kNames.size()) {
    value /= 1024;
    ++index;
  }
  return value < 10 ? fmt::format("{:.1f} {}", value, kNames[index])
                    : fmt::format("{:.0f} {}", value, kNames[index]);
}

}  // namespace bulkhead::cli
