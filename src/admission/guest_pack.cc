#include "admission/guest_pack.h"

#include <algorithm>
#include <string_view>

#include "admission/byte_reader.h"
#include "admission/wasm_scan.h"
#include "contract/guest_abi.h"

namespace bulkhead::admission {
namespace {

constexpr std::uint8_t kCustomSection = 0;

void AppendLeb(std::size_t value, std::vector<std::uint8_t>& bytes) {
  for (; value > 0x7F; value >>= 7U) {
    bytes.push_back(static_cast<std::uint8_t>(0x80U | (value & 0x7FU)));
  }
  bytes.push_back(static_cast<std::uint8_t>(value));
}

void AppendText(std::string_view text, std::vector<std::uint8_t>& bytes) {
  bytes.insert(bytes.end(), text.begin(), text.end());
}

void AppendCustom(std::string_view name, std::string_view content,
                  std::vector<std::uint8_t>& bytes) {
  std::vector<std::uint8_t> payload;
  AppendLeb(name.size(), payload);
  AppendText(name, payload);
  AppendText(content, payload);
  bytes.push_back(kCustomSection);
  AppendLeb(payload.size(), bytes);
  bytes.insert(bytes.end(), payload.begin(), payload.end());
}

enum class Fate { kKeep, kReplace, kDrop };

Fate FateOf(std::string_view custom_section) {
  if (custom_section == contract::kManifestSection ||
      custom_section == contract::kFeaturesSection) {
    return Fate::kReplace;
  }
  const auto allowed = contract::CustomSections();
  return std::find(allowed.begin(), allowed.end(), custom_section) == allowed.end() ? Fate::kDrop
                                                                                    : Fate::kKeep;
}

}  // namespace

Result<PackedGuest> PackGuest(std::span<const std::uint8_t> module) {
  PackedGuest packed;
  ByteReader reader(module, "the module");
  BH_TRY(reader.Skip(kHeaderBytes, "the header"));
  packed.bytes.assign(module.begin(), module.begin() + kHeaderBytes);
  while (reader.remaining() > 0) {
    const std::size_t begin = reader.offset();
    const std::uint8_t id = BH_TRY(reader.Byte("a section"));
    const std::uint32_t size = BH_TRY(reader.U32("the size of a section"));
    ByteReader section = BH_TRY(reader.Take(size, "a section"));
    Fate fate = Fate::kKeep;
    if (id == kCustomSection) {
      const std::string_view name = BH_TRY(section.Name("a custom section name"));
      fate = FateOf(name);
      if (fate == Fate::kDrop) {
        packed.dropped.emplace_back(name);
      }
    }
    if (fate == Fate::kKeep) {
      const auto bytes = module.subspan(begin, reader.offset() - begin);
      packed.bytes.insert(packed.bytes.end(), bytes.begin(), bytes.end());
    }
  }
  AppendCustom(contract::kFeaturesSection, contract::FeaturesBytes(), packed.bytes);
  AppendCustom(contract::kManifestSection, contract::ManifestText(), packed.bytes);
  return packed;
}

}  // namespace bulkhead::admission
