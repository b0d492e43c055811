#include "staging/staging_name.h"

#include <fmt/core.h>

#include "base/proc_stat.h"
#include "base/random_id.h"
#include "staging/parse_number.h"
#include "staging/proc_facts.h"

namespace bulkhead::staging {
namespace {

constexpr std::size_t kRandomBytes = 8;
constexpr std::size_t kRandomDigits = kRandomBytes * 2;

std::string Format(const OwnerIdentity& owner, std::string_view random) {
  return fmt::format("{}{}-{}-{}-{}-{}", kStagingPrefix, owner.pid, owner.start_ticks,
                     owner.boot_id, owner.pid_namespace, random);
}

// Cuts the text up to the next '-', or all of it, off the front of `rest`.
std::string_view TakeField(std::string_view& rest) {
  const std::size_t dash = rest.find('-');
  const std::string_view field = rest.substr(0, dash);
  rest.remove_prefix(dash == std::string_view::npos ? rest.size() : dash + 1);
  return field;
}

bool IsHex(std::string_view text, std::size_t digits) {
  return text.size() == digits &&
         text.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

}  // namespace

Result<OwnerIdentity> OwnerIdentity::ReadSelf() {
  const ProcStat stat = BH_TRY(ReadOwnProcStat());
  OwnerIdentity self;
  self.pid = stat.pid;
  self.start_ticks = stat.start_time;
  self.boot_id = BH_TRY(ReadBootId());
  self.pid_namespace = BH_TRY(ReadPidNamespace());
  return self;
}

std::string MakeStagingName(const OwnerIdentity& owner) {
  return Format(owner, RandomHex(kRandomBytes));
}

std::optional<OwnerIdentity> ParseStagingName(std::string_view name) {
  if (!name.starts_with(kStagingPrefix)) {
    return std::nullopt;
  }
  std::string_view rest = name.substr(kStagingPrefix.size());
  const auto pid = ParseNumber<pid_t>(TakeField(rest));
  const auto start_ticks = ParseNumber<std::uint64_t>(TakeField(rest));
  const std::string_view boot_id = TakeField(rest);
  const auto pid_namespace = ParseNumber<std::uint64_t>(TakeField(rest));
  const std::string_view random = rest;
  if (!pid || *pid <= 0 || !start_ticks || !IsHex(boot_id, kBootIdDigits) || !pid_namespace ||
      !IsHex(random, kRandomDigits)) {
    return std::nullopt;
  }
  OwnerIdentity owner{*pid, *start_ticks, std::string(boot_id), *pid_namespace};
  // Formatting it again refuses leading zeros and whatever else the number parser accepts.
  if (Format(owner, random) != name) {
    return std::nullopt;
  }
  return owner;
}

}  // namespace bulkhead::staging
