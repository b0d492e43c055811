#include "admission/wasm_scan.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>

#include "admission/byte_reader.h"
#include "admission/wasm_segments.h"
#include "base/strings.h"

namespace bulkhead::admission {
namespace {

constexpr std::array<std::uint8_t, 4> kMagic = {0x00, 0x61, 0x73, 0x6D};  // "\0asm"
constexpr std::uint16_t kCoreVersion = 1;
constexpr std::uint16_t kComponentLayer = 1;
constexpr std::uint8_t kTableWithInitialiser = 0x40;
constexpr std::size_t kShownNameBytesMax = 96;

// Bytes of the smallest entry: an import is two names, a kind and an index; an export a name, a
// kind and an index; a global a type, a mutability and an end.
constexpr CountBound kImports = {"imports", "too-many-imports", kImportsMax, 4};
constexpr CountBound kFunctions = {"functions", "too-many-functions", kFunctionsMax};
constexpr CountBound kTables = {"tables", "too-many-tables", kTablesMax, 3};
constexpr CountBound kMemories = {"memories", "too-many-memories", kMemoriesMax, 2};
constexpr CountBound kGlobals = {"globals", "too-many-globals", kGlobalsMax, 3};
constexpr CountBound kTags = {"tags", "too-many-tags", kTagsMax, 2};
constexpr CountBound kExports = {"exports", "too-many-exports", kExportsMax, 3};

// Adds to an index space, unless that is full.
template <class T>
Status Add(std::vector<T>& space, const CountBound& bound, T entry) {
  if (space.size() >= bound.max) {
    return Refused(bound.code, fmt::format("more than {} {}", bound.max, bound.what));
  }
  space.push_back(entry);
  return {};
}

Status CheckHeader(std::span<const std::uint8_t> bytes) {
  if (bytes.empty()) {
    return Refused("empty-module", "the module has no bytes");
  }
  const std::size_t magic_bytes = std::min(bytes.size(), kMagic.size());
  if (!std::equal(kMagic.begin(), kMagic.begin() + magic_bytes, bytes.begin())) {
    return InvalidBinary(0, "the magic bytes 00 61 73 6d", ToHex(bytes.first(magic_bytes)));
  }
  if (bytes.size() < kHeaderBytes) {
    return InvalidBinary(bytes.size(), "a header of 8 bytes", "the end of the module");
  }
  const auto u16 = [&](std::size_t at) {
    return static_cast<std::uint16_t>(bytes[at] | (bytes[at + 1] << 8));
  };
  const std::uint16_t version = u16(4);
  const std::uint16_t layer = u16(6);
  if (layer == kComponentLayer) {
    return Refused("component", "the module is a component; only core modules run");
  }
  if (version != kCoreVersion || layer != 0) {
    return Refused("unsupported-version",
                   fmt::format("the module has binary version {}, layer {}; only version {}, "
                               "layer 0 is known",
                               version, layer, kCoreVersion));
  }
  return {};
}

class Scanner {
 public:
  explicit Scanner(Scan& scan) : scan_(scan) {}

  Status Run();

 private:
  using Read = Status (Scanner::*)(ByteReader&);

  struct Section {
    std::uint8_t rank;  // place in the prescribed order
    std::string_view where;
    Read read;
  };

  // By section id, from 1 on.
  static const std::array<Section, 13> kSections;

  Status ReadSection(std::uint8_t id, std::size_t offset, ByteReader section);
  Status ReadCustom(ByteReader& section);
  Status ReadTypeSection(ByteReader& section);
  Status ReadImports(ByteReader& section);
  Status ReadImport(ByteReader& section);
  Status ReadFunctions(ByteReader& section);
  Status ReadTables(ByteReader& section);
  Status ReadMemories(ByteReader& section);
  Status ReadGlobals(ByteReader& section);
  Status ReadExports(ByteReader& section);
  Status ReadStart(ByteReader& section);
  Status ReadElementSection(ByteReader& section);
  Status ReadCodeSection(ByteReader& section);
  Status ReadDataSection(ByteReader& section);
  Status ReadDataCount(ByteReader& section);
  Status ReadTags(ByteReader& section);

  Status AddFunction(ByteReader& reader);
  Status AddTable(ByteReader& reader);
  Status AddMemory(ByteReader& reader);
  Status AddGlobal(ByteReader& reader);
  Status AddTag(ByteReader& reader);
  Status AddExtern(ByteReader& reader, ExternKind kind);
  Result<ExternKind> ReadExternKind(ByteReader& reader);
  std::size_t SpaceSize(ExternKind kind) const;
  Status CheckExportNames() const;
  Status CheckEnd() const;

  std::uint32_t FunctionsDefined() const {
    return static_cast<std::uint32_t>(scan_.function_types.size()) - scan_.functions_imported;
  }

  Scan& scan_;
  std::uint8_t rank_ = 0;
  bool has_code_ = false;
  std::optional<std::uint32_t> data_count_;
  std::uint32_t data_segments_ = 0;
};

const std::array<Scanner::Section, 13> Scanner::kSections = {{
    {1, "the type section", &Scanner::ReadTypeSection},
    {2, "the import section", &Scanner::ReadImports},
    {3, "the function section", &Scanner::ReadFunctions},
    {4, "the table section", &Scanner::ReadTables},
    {5, "the memory section", &Scanner::ReadMemories},
    {7, "the global section", &Scanner::ReadGlobals},
    {8, "the export section", &Scanner::ReadExports},
    {9, "the start section", &Scanner::ReadStart},
    {10, "the element section", &Scanner::ReadElementSection},
    {12, "the code section", &Scanner::ReadCodeSection},
    {13, "the data section", &Scanner::ReadDataSection},
    {11, "the data count section", &Scanner::ReadDataCount},
    {6, "the tag section", &Scanner::ReadTags},
}};

Status Scanner::Run() {
  BH_TRY(CheckHeader(scan_.bytes));
  ByteReader module(scan_.bytes, "the module");
  BH_TRY(module.Skip(kHeaderBytes, "the header"));
  while (module.remaining() > 0) {
    const std::size_t offset = module.offset();
    const std::uint8_t id = BH_TRY(module.Byte("a section id"));
    if (id > kSections.size()) {
      return InvalidBinary(offset, "a section id of at most 13", std::to_string(id));
    }
    const std::string_view where =
        id == 0 ? std::string_view("the custom section") : kSections.at(id - 1U).where;
    const std::uint32_t bytes = BH_TRY(module.U32("a section size"));
    const ByteReader section = BH_TRY(module.Take(bytes, where));
    BH_TRY(ReadSection(id, offset, section));
  }
  return CheckEnd();
}

Status Scanner::ReadSection(std::uint8_t id, std::size_t offset, ByteReader section) {
  if (id == 0) {
    return ReadCustom(section);
  }
  const Section& rule = kSections.at(id - 1U);
  if (rule.rank == rank_) {
    return Refused("duplicate-section",
                   fmt::format("at byte {}: {} comes twice", offset, rule.where));
  }
  if (rule.rank < rank_) {
    return InvalidBinary(offset, "sections in the prescribed order",
                         fmt::format("{} too late", rule.where));
  }
  rank_ = rule.rank;
  BH_TRY((this->*rule.read)(section));
  return section.End();
}

Status Scanner::ReadCustom(ByteReader& section) {
  if (scan_.custom_sections.size() >= kCustomSectionsMax) {
    return Refused("too-many-custom-sections",
                   fmt::format("more than {} custom sections", kCustomSectionsMax));
  }
  const std::string_view name = BH_TRY(section.Name("a custom section name"));
  scan_.custom_sections.push_back(
      {name, scan_.bytes.subspan(section.offset(), section.remaining())});
  return {};
}

Status Scanner::ReadTypeSection(ByteReader& section) {
  return ReadTypes(section, scan_.type_offsets);
}

Status Scanner::ReadImports(ByteReader& section) {
  for (std::uint32_t left = BH_TRY(section.Count(kImports)); left > 0; --left) {
    BH_TRY(ReadImport(section));
  }
  scan_.functions_imported = static_cast<std::uint32_t>(scan_.function_types.size());
  scan_.memories_imported = static_cast<std::uint32_t>(scan_.memories.size());
  return {};
}

Status Scanner::ReadImport(ByteReader& section) {
  ScanImport import;
  import.module = BH_TRY(section.Name("an import module name"));
  import.name = BH_TRY(section.Name("an import name"));
  import.kind = BH_TRY(ReadExternKind(section));
  import.index = static_cast<std::uint32_t>(SpaceSize(import.kind));
  BH_TRY(AddExtern(section, import.kind));
  scan_.imports.push_back(import);
  return {};
}

Status Scanner::AddExtern(ByteReader& reader, ExternKind kind) {
  switch (kind) {
    case ExternKind::kFunction:
      return AddFunction(reader);
    case ExternKind::kTable:
      return AddTable(reader);
    case ExternKind::kMemory:
      return AddMemory(reader);
    case ExternKind::kGlobal:
      return AddGlobal(reader);
    case ExternKind::kTag:
      return AddTag(reader);
  }
  return {};
}

Status Scanner::AddFunction(ByteReader& reader) {
  const std::uint32_t type = BH_TRY(reader.Index(scan_.type_offsets.size(), "a type index"));
  return Add(scan_.function_types, kFunctions, type);
}

Status Scanner::AddTable(ByteReader& reader) {
  return Add(scan_.tables, kTables, BH_TRY(ReadTableType(reader)));
}

Status Scanner::AddMemory(ByteReader& reader) {
  return Add(scan_.memories, kMemories, BH_TRY(ReadMemoryType(reader)));
}

Status Scanner::AddGlobal(ByteReader& reader) {
  const auto offset = static_cast<std::uint32_t>(reader.offset());
  BH_TRY(ReadGlobalType(reader));
  return Add(scan_.global_offsets, kGlobals, offset);
}

Status Scanner::AddTag(ByteReader& reader) {
  const ByteReader start = reader;
  if (BH_TRY(reader.Byte("a tag attribute")) != 0) {
    return start.Unexpected("tag attribute 0 (exception)");
  }
  const std::uint32_t type = BH_TRY(reader.Index(scan_.type_offsets.size(), "a type index"));
  return Add(scan_.tag_types, kTags, type);
}

Status Scanner::ReadFunctions(ByteReader& section) {
  for (std::uint32_t left = BH_TRY(section.Count(kFunctions)); left > 0; --left) {
    BH_TRY(AddFunction(section));
  }
  return {};
}

Status Scanner::ReadTables(ByteReader& section) {
  for (std::uint32_t left = BH_TRY(section.Count(kTables)); left > 0; --left) {
    if (section.Peek() != kTableWithInitialiser) {
      BH_TRY(AddTable(section));
      continue;
    }
    BH_TRY(section.Byte("a table"));
    const ByteReader reserved = section;
    if (BH_TRY(section.Byte("a reserved byte")) != 0) {
      return reserved.Unexpected("a reserved byte 0");
    }
    BH_TRY(AddTable(section));
    BH_TRY(SkipExpression(section));
  }
  return {};
}

Status Scanner::ReadMemories(ByteReader& section) {
  for (std::uint32_t left = BH_TRY(section.Count(kMemories)); left > 0; --left) {
    BH_TRY(AddMemory(section));
  }
  return {};
}

Status Scanner::ReadGlobals(ByteReader& section) {
  for (std::uint32_t left = BH_TRY(section.Count(kGlobals)); left > 0; --left) {
    BH_TRY(AddGlobal(section));
    BH_TRY(SkipExpression(section));
  }
  return {};
}

Status Scanner::ReadTags(ByteReader& section) {
  for (std::uint32_t left = BH_TRY(section.Count(kTags)); left > 0; --left) {
    BH_TRY(AddTag(section));
  }
  return {};
}

Result<ExternKind> Scanner::ReadExternKind(ByteReader& reader) {
  const ByteReader start = reader;
  const std::uint8_t code = BH_TRY(reader.Byte("a kind"));
  if (code > static_cast<std::uint8_t>(ExternKind::kTag)) {
    return start.Unexpected("a kind of at most 4");
  }
  return static_cast<ExternKind>(code);
}

std::size_t Scanner::SpaceSize(ExternKind kind) const {
  switch (kind) {
    case ExternKind::kFunction:
      return scan_.function_types.size();
    case ExternKind::kTable:
      return scan_.tables.size();
    case ExternKind::kMemory:
      return scan_.memories.size();
    case ExternKind::kGlobal:
      return scan_.global_offsets.size();
    case ExternKind::kTag:
      return scan_.tag_types.size();
  }
  return 0;
}

Status Scanner::ReadExports(ByteReader& section) {
  for (std::uint32_t left = BH_TRY(section.Count(kExports)); left > 0; --left) {
    ScanExport item;
    item.name = BH_TRY(section.Name("an export name"));
    item.kind = BH_TRY(ReadExternKind(section));
    item.index = BH_TRY(section.Index(SpaceSize(item.kind), "an export index"));
    scan_.exports.push_back(item);
  }
  return CheckExportNames();
}

Status Scanner::CheckExportNames() const {
  // Sorting, not hashing: no choice of names makes it slow.
  std::vector<std::string_view> names;
  names.reserve(scan_.exports.size());
  for (const ScanExport& item : scan_.exports) {
    names.push_back(item.name);
  }
  std::sort(names.begin(), names.end());
  const auto twice = std::adjacent_find(names.begin(), names.end());
  if (twice != names.end()) {
    return Refused("duplicate-export", fmt::format("the module exports {} twice",
                                                   Quoted(CutUtf8(*twice, kShownNameBytesMax))));
  }
  return {};
}

Status Scanner::ReadStart(ByteReader& section) {
  scan_.start_function =
      BH_TRY(section.Index(scan_.function_types.size(), "a start function index"));
  return {};
}

Status Scanner::ReadElementSection(ByteReader& section) {
  return ReadElements(section);
}

Status Scanner::ReadCodeSection(ByteReader& section) {
  has_code_ = true;
  return ReadCode(section, FunctionsDefined());
}

Status Scanner::ReadDataSection(ByteReader& section) {
  data_segments_ = BH_TRY(ReadData(section));
  return {};
}

Status Scanner::ReadDataCount(ByteReader& section) {
  data_count_ = BH_TRY(section.U32("the number of data segments"));
  return {};
}

Status Scanner::CheckEnd() const {
  if (!has_code_ && FunctionsDefined() > 0) {
    return InvalidBinary(scan_.bytes.size(), fmt::format("{} function bodies", FunctionsDefined()),
                         "no code section");
  }
  if (data_count_ && *data_count_ != data_segments_) {
    return InvalidBinary(scan_.bytes.size(), fmt::format("{} data segments", *data_count_),
                         std::to_string(data_segments_));
  }
  return {};
}

}  // namespace

std::string_view ExternKindName(ExternKind kind) {
  switch (kind) {
    case ExternKind::kFunction:
      return "function";
    case ExternKind::kTable:
      return "table";
    case ExternKind::kMemory:
      return "memory";
    case ExternKind::kGlobal:
      return "global";
    case ExternKind::kTag:
      return "tag";
  }
  return "unknown";
}

Status ScanModule(std::span<const std::uint8_t> bytes, Scan& scan) {
  scan = Scan{};
  scan.bytes = bytes;
  return Scanner(scan).Run();
}

std::string ExternTypeText(const Scan& scan, ExternKind kind, std::uint32_t index) {
  const auto function_text = [&](std::uint32_t type) {
    return FunctionTypeText(ByteReader::At(scan.bytes, scan.type_offsets.at(type)));
  };
  switch (kind) {
    case ExternKind::kFunction:
      return function_text(scan.function_types.at(index));
    case ExternKind::kTable:
      return ToText(scan.tables.at(index));
    case ExternKind::kMemory:
      return ToText(scan.memories.at(index));
    case ExternKind::kGlobal: {
      ByteReader reader = ByteReader::At(scan.bytes, scan.global_offsets.at(index));
      return ToText(ReadGlobalType(reader).value_or(GlobalType{}));
    }
    case ExternKind::kTag:
      return function_text(scan.tag_types.at(index));
  }
  return {};
}

}  // namespace bulkhead::admission
