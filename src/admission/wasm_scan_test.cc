#include "admission/wasm_scan.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "admission/test_modules.h"
#include "admission/wasm_segments.h"

namespace bulkhead::admission {
namespace {

// The refusal code, "" when the scan succeeds. The bytes sit alone on the heap, so that a sanitizer
// sees each step beyond them.
std::string CodeOf(const Bytes& bytes) {
  const Bytes alone(bytes);
  Scan scan;
  const Status status = ScanModule(alone, scan);
  return status ? std::string() : status.error().reason;
}

std::string MessageOf(const Bytes& bytes) {
  Scan scan;
  const Status status = ScanModule(bytes, scan);
  return status ? std::string() : status.error().message;
}

Bytes TypeSection(const Bytes& payload) {
  return Module({Section(1, payload)});
}

TEST(WasmScan, ReadsARichModule) {
  const Bytes bytes = Wat(kRichCommand);
  Scan scan;
  const Status status = ScanModule(bytes, scan);
  ASSERT_TRUE(status) << status.error().message;
  ASSERT_EQ(scan.imports.size(), 2U);
  EXPECT_EQ(scan.imports[1].name, "proc_exit");
  EXPECT_EQ(scan.functions_imported, 2U);
  EXPECT_EQ(scan.function_types.size(), 4U);
  EXPECT_EQ(scan.start_function, 2U);
  ASSERT_EQ(scan.memories.size(), 2U);
  EXPECT_EQ(scan.memories[0].pages_min, 2U);
  EXPECT_EQ(scan.memories[0].pages_max, 5U);
  EXPECT_EQ(scan.exports.size(), 5U);
  EXPECT_EQ(ExternTypeText(scan, ExternKind::kFunction, 0), "(i32, i32, i32, i32) -> i32");
  EXPECT_EQ(ExternTypeText(scan, ExternKind::kFunction, 1), "(i32) -> ()");
  EXPECT_EQ(ExternTypeText(scan, ExternKind::kTable, 0), "funcref 4..9");
  EXPECT_EQ(ExternTypeText(scan, ExternKind::kTable, 1), "externref 1..");
  EXPECT_EQ(ExternTypeText(scan, ExternKind::kMemory, 0), "2..5 pages");
  EXPECT_EQ(ExternTypeText(scan, ExternKind::kGlobal, 0), "mut i32");
  EXPECT_EQ(ExternTypeText(scan, ExternKind::kGlobal, 1), "f64");
  EXPECT_EQ(ExternTypeText(scan, ExternKind::kTag, 0), "(i32) -> ()");
}

TEST(WasmScan, FunctionTypesAreShownWithAllTheirForms) {
  const auto shown = [](const Bytes& type) {
    const Bytes bytes = Module({Section(1, Join({{1}, type})), Section(3, {1, 0}), StartCode()});
    Scan scan;
    const Status status = ScanModule(bytes, scan);
    return status ? ExternTypeText(scan, ExternKind::kFunction, 0) : status.error().message;
  };
  EXPECT_EQ(shown({0x60, 0, 0}), "() -> ()");
  EXPECT_EQ(shown({0x60, 1, 0x7B, 2, 0x7D, 0x7C}), "(v128) -> (f32, f64)");
  EXPECT_EQ(shown({0x60, 3, 0x63, 0x00, 0x64, 0x70, 0x69, 0}),
            "((ref null 0), (ref func), exnref) -> ()");
  EXPECT_EQ(shown({0x5F, 0}), "a struct type");
  EXPECT_EQ(shown({0x5E, 0x78, 1}), "an array type");
  EXPECT_EQ(shown(Join({{0x60}, Leb(20), Bytes(20, 0x7F), {0}})),
            "(i32, i32, i32, i32, i32, i32, i32, i32, i32, i32, i32, i32, i32, i32, i32, i32, "
            "and 4 more) -> ()");
}

TEST(WasmScan, AcceptsGarbageCollectedTypes) {
  EXPECT_EQ(CodeOf(TypeSection({2,    0x4E, 2,    0x50, 0,    0x5F, 2,
                                0x78, 0,    0x63, 0x01, 1,              // rec, sub, struct
                                0x4F, 1,    0,    0x5E, 0x64, 0x6E, 1,  // sub final, array
                                0x60, 2,    0x6B, 0x71, 0})),
            "");
  Scan scan;
  const Bytes bytes = TypeSection({1, 0x4E, 3, 0x60, 0, 0, 0x5F, 1, 0x77, 1, 0x5E, 0x7F, 0});
  ASSERT_TRUE(ScanModule(bytes, scan));
  EXPECT_EQ(scan.type_offsets, (std::vector<std::uint32_t>{13, 16, 20}));
  EXPECT_EQ(CodeOf(TypeSection({1, 0x4E, 0})), "");
}

TEST(WasmScan, RefusesUnknownTypeForms) {
  for (const Bytes& type : {Bytes{0x61}, Bytes{0x60, 1, 0x76, 0}, Bytes{0x60, 1, 0x78, 0},
                            Bytes{0x5F, 1, 0x7F, 2}, Bytes{0x5E, 0x79, 0}, Bytes{0x4E, 1, 0x4E, 0},
                            Bytes{0x60, 1, 0x64, 0x40, 0}, Bytes{0x64, 0x70}}) {
    EXPECT_EQ(CodeOf(TypeSection(Join({{1}, type, Bytes(4, 0)}))), "invalid-binary");
  }
  EXPECT_EQ(CodeOf(TypeSection({1, 0x50, 2, 0, 0, 0x5F, 0})), "too-many-supertypes");
}

TEST(WasmScan, ReadsMemoriesOfAllForms) {
  const auto memory = [](const Bytes& type) {
    return CodeOf(Module({Section(5, Join({{1}, type}))}));
  };
  EXPECT_EQ(memory({0x00, 1}), "");
  EXPECT_EQ(memory({0x01, 1, 2}), "");
  EXPECT_EQ(memory({0x03, 1, 2}), "");
  EXPECT_EQ(memory({0x04, 1}), "");
  EXPECT_EQ(memory({0x09, 1, 2, 0}), "");
  EXPECT_EQ(memory(Join({{0x00}, Leb(65536)})), "");
  EXPECT_EQ(memory(Join({{0x00}, Leb(65537)})), "invalid-binary");
  EXPECT_EQ(memory(Join({{0x01, 0}, Leb(65537)})), "invalid-binary");
  EXPECT_EQ(memory(Join({{0x04}, Leb(1ULL << 48)})), "");
  EXPECT_EQ(memory(Join({{0x04}, Leb((1ULL << 48) + 1)})), "invalid-binary");
  EXPECT_EQ(memory(Join({{0x0C}, Leb(~0ULL), {0}})), "");
  EXPECT_EQ(memory({0x08, 1, 17}), "invalid-binary");
  EXPECT_EQ(memory({0x10, 1}), "invalid-binary");
}

TEST(WasmScan, AcceptsConstantExpressionsOfAllForms) {
  const auto global = [](const Bytes& expression) {
    return CodeOf(Module({Section(6, Join({{1, 0x7F, 0}, expression}))}));
  };
  const std::vector<Bytes> good = {
      {0x41, 0x7F, 0x0B},
      {0x42, 0x80, 0x7F, 0x0B},
      {0x43, 0, 0, 0, 0, 0x0B},
      {0x44, 0, 0, 0, 0, 0, 0, 0, 0, 0x0B},
      Join({{0xFD, 0x0C}, Bytes(16, 0), {0x0B}}),
      {0x23, 0, 0x41, 1, 0x6A, 0x41, 2, 0x6B, 0x41, 3, 0x6C, 0x0B},
      {0x42, 0, 0x42, 1, 0x7C, 0x42, 1, 0x7D, 0x42, 1, 0x7E, 0x0B},
      {0xD0, 0x70, 0x0B},
      {0xD0, 0x05, 0x0B},
      {0xD2, 0x00, 0x0B},
      {0x41, 0, 0xFB, 28, 0x0B},
      {0xFB, 1, 0, 0x0B},
      {0x41, 0, 0xFB, 8, 0, 1, 0x0B},
  };
  for (const Bytes& expression : good) {
    EXPECT_EQ(global(expression), "");
    EXPECT_EQ(global(Bytes(expression.begin(), expression.end() - 1)), "invalid-binary");
  }
  for (const Bytes& bad :
       {Bytes{0x10, 0, 0x0B}, Bytes{0xFB, 2, 0, 0x0B}, Bytes{0xFD, 0x0D, 0x0B}}) {
    EXPECT_EQ(global(bad), "invalid-binary");
  }
}

TEST(WasmScan, AcceptsElementAndDataSegmentsOfAllForms) {
  const auto elements = [](const Bytes& segment) {
    return CodeOf(Module({Section(9, Join({{1}, segment}))}));
  };
  const std::vector<Bytes> good = {
      {0, 0x41, 0, 0x0B, 1, 0},
      {1, 0, 2, 0, 1},
      {2, 0, 0x41, 0, 0x0B, 0, 1, 0},
      {3, 0, 1, 0},
      {4, 0x41, 0, 0x0B, 1, 0xD2, 0, 0x0B},
      {5, 0x70, 1, 0xD0, 0x70, 0x0B},
      {6, 0, 0x41, 0, 0x0B, 0x6F, 1, 0xD0, 0x6F, 0x0B},
      {7, 0x64, 0x70, 1, 0xD2, 0, 0x0B},
  };
  for (const Bytes& segment : good) {
    EXPECT_EQ(elements(segment), "");
  }
  EXPECT_EQ(elements({8, 0, 1, 0}), "invalid-binary");
  EXPECT_EQ(elements({1, 1, 1, 0}), "invalid-binary");
  const auto data = [](const Bytes& segment) {
    return CodeOf(Module({Section(11, Join({{1}, segment}))}));
  };
  EXPECT_EQ(data({0, 0x41, 0, 0x0B, 2, 'h', 'i'}), "");
  EXPECT_EQ(data({1, 2, 'h', 'i'}), "");
  EXPECT_EQ(data({2, 1, 0x41, 0, 0x0B, 2, 'h', 'i'}), "");
  EXPECT_EQ(data({3, 2, 'h', 'i'}), "invalid-binary");
  EXPECT_EQ(data({1, 3, 'h', 'i'}), "invalid-binary");
}

TEST(WasmScan, AcceptsTablesWithInitialisers) {
  EXPECT_EQ(CodeOf(Module({Section(4, {1, 0x40, 0, 0x63, 0x70, 0, 1, 0xD0, 0x70, 0x0B})})), "");
  EXPECT_EQ(CodeOf(Module({Section(4, {1, 0x40, 1, 0x70, 0, 1, 0xD0, 0x70, 0x0B})})),
            "invalid-binary");
  EXPECT_EQ(CodeOf(Module({Section(4, {1, 0x70, 0x05, 1, 2})})), "");
  EXPECT_EQ(CodeOf(Module({Section(4, {1, 0x70, 0x02, 1})})), "invalid-binary");
  EXPECT_EQ(CodeOf(Module({Section(4, {1, 0x7F, 0x00, 1})})), "invalid-binary");
}

TEST(WasmScan, SectionsComeOnceAndInOrder) {
  EXPECT_EQ(CodeOf(SmallestCommand()), "");
  EXPECT_EQ(CodeOf(Module({StartType(), StartType()})), "duplicate-section");
  EXPECT_EQ(CodeOf(Module({StartType(), Custom("a"), Custom("a"), StartType()})),
            "duplicate-section");
  EXPECT_EQ(CodeOf(Module({Section(3, {0}), StartType()})), "invalid-binary");
  // Tags stand between memories and globals, the data count between elements and code.
  EXPECT_EQ(CodeOf(Module({StartType(), Section(5, {0}), Section(13, {1, 0, 0}), Section(6, {0})})),
            "");
  EXPECT_EQ(CodeOf(Module({StartType(), Section(6, {0}), Section(13, {1, 0, 0})})),
            "invalid-binary");
  EXPECT_EQ(CodeOf(Module({Section(9, {0}), Section(12, {0}), Section(10, {0}), Section(11, {0})})),
            "");
  EXPECT_EQ(CodeOf(Module({Section(10, {0}), Section(12, {0})})), "invalid-binary");
  EXPECT_EQ(CodeOf(Module({Section(14, {0})})), "invalid-binary");
  EXPECT_EQ(MessageOf(Module({Section(14, {0})})),
            "at byte 8: expected a section id of at most 13, found 14");
}

TEST(WasmScan, SectionsEndWhereTheySay) {
  EXPECT_EQ(CodeOf(Module({Section(1, {1, 0x60, 0, 0, 0})})), "invalid-binary");
  EXPECT_EQ(CodeOf(Module({Section(1, {})})), "invalid-binary");
  EXPECT_EQ(CodeOf(Join({Header(), {1, 5, 0}})), "invalid-binary");
  EXPECT_EQ(MessageOf(Module({Section(1, {1, 0x60, 0, 0, 9})})),
            "at byte 14: expected the end of the type section, found byte 0x09");
}

TEST(WasmScan, CountsOfDifferentSectionsAgree) {
  EXPECT_EQ(CodeOf(Module({StartType(), StartFunction()})), "invalid-binary");
  EXPECT_EQ(CodeOf(Module({StartType(), StartCode()})), "invalid-binary");
  EXPECT_EQ(CodeOf(Module({Section(12, {1}), Section(11, {1, 1, 0})})), "");
  EXPECT_EQ(CodeOf(Module({Section(12, {2}), Section(11, {1, 1, 0})})), "invalid-binary");
  EXPECT_EQ(CodeOf(Module({Section(12, {1})})), "invalid-binary");
}

TEST(WasmScan, IndicesStayInTheirSpace) {
  EXPECT_EQ(CodeOf(Module({StartType(), Section(3, {1, 1}), StartCode()})), "invalid-binary");
  EXPECT_EQ(CodeOf(Module({Section(2, Join({{1}, Name("m"), Name("f"), {0, 0}}))})),
            "invalid-binary");
  EXPECT_EQ(CodeOf(Module({Section(13, {1, 0, 0})})), "invalid-binary");
  EXPECT_EQ(CodeOf(Module({StartType(), Section(13, {1, 1, 0})})), "invalid-binary");
  EXPECT_EQ(CodeOf(Module({Section(8, {0})})), "invalid-binary");
  for (std::uint8_t kind = 0; kind <= 5; ++kind) {
    EXPECT_EQ(CodeOf(Module({Section(7, Join({{1}, Name("x"), {kind, 0}}))})), "invalid-binary");
  }
}

TEST(WasmScan, RefusesExportsOfOneName) {
  const Bytes twice =
      Section(7, Join({{3}, Name("b"), {0, 0}, Name("a"), {0, 0}, Name("b"), {0, 0}}));
  const Bytes bytes = Module({StartType(), StartFunction(), twice, StartCode()});
  EXPECT_EQ(CodeOf(bytes), "duplicate-export");
  EXPECT_EQ(MessageOf(bytes), "the module exports 'b' twice");
}

TEST(WasmScan, RefusesNamesThatAreNotUtf8) {
  EXPECT_EQ(CodeOf(Module({Custom("\xFF")})), "invalid-binary");
  EXPECT_EQ(CodeOf(Module({Custom("na\xC3\xAFve")})), "");
}

TEST(WasmScan, WrongHeadersHaveCodesOfTheirOwn) {
  EXPECT_EQ(CodeOf({}), "empty-module");
  EXPECT_EQ(CodeOf(Header()), "");
  EXPECT_EQ(CodeOf({0x7F, 'E', 'L', 'F', 0, 0, 0, 0}), "invalid-binary");
  EXPECT_EQ(CodeOf({0x00, 0x61, 0x73, 0x6D, 0x0D, 0x00, 0x01, 0x00}), "component");
  EXPECT_EQ(CodeOf({0x00, 0x61, 0x73, 0x6D, 0x02, 0x00, 0x00, 0x00}), "unsupported-version");
  EXPECT_EQ(CodeOf({0x00, 0x61, 0x73, 0x6D, 0x01, 0x00, 0x02, 0x00}), "unsupported-version");
  EXPECT_EQ(MessageOf({0x00, 0x61, 0x73}),
            "at byte 3: expected a header of 8 bytes, found the end of the module");
}

TEST(WasmScan, BoundsEveryList) {
  // A count with room for its entries; it is refused before they are looked at.
  const auto claimed = [](std::uint32_t count, std::size_t entry_bytes) {
    return Join({Leb(count), Bytes(count * entry_bytes)});
  };
  const auto section = [](std::uint8_t id, const Bytes& payload) {
    return CodeOf(Module({StartType(), Section(id, payload)}));
  };
  const auto types = [](const Bytes& payload) { return CodeOf(TypeSection(payload)); };
  EXPECT_EQ(types(claimed(kTypesMax + 1, 3)), "too-many-types");
  EXPECT_EQ(types(Join({{1, 0x4E}, claimed(kTypesMax + 1, 3)})), "too-many-types");
  EXPECT_EQ(types(Join({{1, 0x60}, claimed(kParametersMax + 1, 1)})), "too-many-parameters");
  EXPECT_EQ(types(Join({{1, 0x60, 0}, claimed(kResultsMax + 1, 1)})), "too-many-results");
  EXPECT_EQ(types(Join({{1, 0x5F}, claimed(kFieldsMax + 1, 2)})), "too-many-fields");
  EXPECT_EQ(section(2, claimed(kImportsMax + 1, 4)), "too-many-imports");
  EXPECT_EQ(section(3, claimed(kFunctionsMax + 1, 1)), "too-many-functions");
  EXPECT_EQ(section(4, claimed(kTablesMax + 1, 3)), "too-many-tables");
  EXPECT_EQ(section(5, claimed(kMemoriesMax, 2)), "");
  EXPECT_EQ(section(5, claimed(kMemoriesMax + 1, 2)), "too-many-memories");
  EXPECT_EQ(section(6, claimed(kGlobalsMax + 1, 3)), "too-many-globals");
  EXPECT_EQ(section(13, claimed(kTagsMax + 1, 2)), "too-many-tags");
  EXPECT_EQ(section(7, claimed(kExportsMax + 1, 3)), "too-many-exports");
  EXPECT_EQ(section(9, claimed(kElementSegmentsMax + 1, 2)), "too-many-element-segments");
  EXPECT_EQ(section(11, claimed(kDataSegmentsMax + 1, 2)), "too-many-data-segments");
  Bytes sections = Header();
  for (std::uint32_t i = 0; i <= kCustomSectionsMax; ++i) {
    sections += Custom("");
  }
  EXPECT_EQ(CodeOf(sections), "too-many-custom-sections");
}

TEST(WasmScan, BoundsIndexSpacesAcrossSectionsAndGroups) {
  const Bytes import = Join({{1}, Name("m"), Name("f"), {0, 0}});
  const Bytes functions = Join({Leb(kFunctionsMax), Bytes(kFunctionsMax, 0)});
  EXPECT_EQ(CodeOf(Module({StartType(), Section(2, import), Section(3, functions)})),
            "too-many-functions");
  const Bytes memory = Join({{1}, Name("m"), Name("m"), {2, 0, 0}});
  const Bytes memories = Join({Leb(kMemoriesMax), Bytes(kMemoriesMax * 2, 0)});
  EXPECT_EQ(CodeOf(Module({Section(2, memory), Section(5, memories)})), "too-many-memories");
  // As many types as there may be in one group, and one more behind it.
  Bytes group(kTypesMax * 2);
  for (std::size_t i = 0; i < group.size(); i += 2) {
    group[i] = 0x5F;  // a struct without fields
  }
  EXPECT_EQ(CodeOf(TypeSection(Join({{2, 0x4E}, Leb(kTypesMax), group, {0x60, 0, 0}}))),
            "too-many-types");
}

// A count is believed only as far as bytes are there: what was reserved stays in proportion to the
// module.
TEST(WasmScan, HugeDeclaredCountsReserveNothing) {
  const Bytes huge = {0xFF, 0xFF, 0xFF, 0xFF, 0x0F};
  for (std::uint8_t id = 1; id <= 13; ++id) {
    for (const Bytes& count : {huge, Leb(900'000), Leb(90)}) {
      const Bytes bytes = Module({Section(id, Join({count, {0x60}}))});
      Scan scan;
      ASSERT_FALSE(ScanModule(bytes, scan)) << int{id};
      const std::size_t reserved = scan.type_offsets.capacity() + scan.function_types.capacity() +
                                   scan.tables.capacity() + scan.memories.capacity() +
                                   scan.global_offsets.capacity() + scan.tag_types.capacity() +
                                   scan.imports.capacity() + scan.exports.capacity();
      EXPECT_LE(reserved, bytes.size()) << int{id};
    }
  }
}

// Where sections of a valid module end, the header being the first.
std::set<std::size_t> SectionEnds(const Bytes& bytes) {
  std::set<std::size_t> ends = {kHeaderBytes};
  ByteReader reader(bytes, "the module");
  EXPECT_TRUE(reader.Skip(kHeaderBytes, "the header"));
  while (reader.remaining() > 0) {
    EXPECT_TRUE(reader.Byte("an id"));
    EXPECT_TRUE(reader.Skip(reader.U32("a size").value(), "a section"));
    ends.insert(reader.offset());
  }
  return ends;
}

std::vector<Bytes> ValidModules() {
  return {
      SmallestCommand(),
      Wat(kRichCommand),
      Wat("(module (import \"env\" \"memory\" (memory 1 2 shared)) (func (export \"f\") (param "
          "v128)))"),
      Wat("(module (memory i64 1) (table 3 externref) (global (mut i64) (i64.const 1)))"),
      Module({Section(1, {1, 0x4E, 3, 0x60, 0, 0, 0x5F, 1, 0x77, 1, 0x5E, 0x7F, 0}),
              Custom("name", {1, 2, 3}), Section(13, {1, 0, 0}),
              Section(6, {1, 0x64, 0x01, 0, 0xFB, 1, 1, 0x0B})}),
  };
}

TEST(WasmScan, NoModuleCutInsideASectionIsAccepted) {
  for (const Bytes& bytes : ValidModules()) {
    ASSERT_EQ(CodeOf(bytes), "");
    const std::set<std::size_t> ends = SectionEnds(bytes);
    for (std::size_t size = 0; size < bytes.size(); ++size) {
      const Bytes prefix(bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(size));
      if (!ends.contains(size)) {
        EXPECT_NE(CodeOf(prefix), "") << size;
      } else {
        CodeOf(prefix);
      }
    }
  }
}

TEST(WasmScan, AnyByteMayBeAnything) {
  std::size_t refused = 0;
  std::size_t total = 0;
  for (const Bytes& valid : ValidModules()) {
    for (std::size_t at = 0; at < valid.size(); ++at) {
      for (unsigned value = 0; value < 256;
           value += 5) {  // 5 and 256 share no factor: all bit patterns turn up
        Bytes bytes = valid;
        bytes[at] = static_cast<std::uint8_t>(value + at);
        refused += CodeOf(bytes).empty() ? 0U : 1U;
        ++total;
      }
    }
  }
  EXPECT_GT(total, 10'000U);
  EXPECT_GT(refused, total / 4);
}

TEST(WasmScan, AnyStretchMayBeMissingOrDoubled) {
  for (const Bytes& valid : ValidModules()) {
    const auto at = [&](std::size_t i) { return valid.begin() + static_cast<std::ptrdiff_t>(i); };
    for (std::size_t begin = 0; begin < valid.size(); ++begin) {
      for (std::size_t end = begin + 1; end <= std::min(begin + 6, valid.size()); ++end) {
        CodeOf(Join({Bytes(valid.begin(), at(begin)), Bytes(at(end), valid.end())}));
        CodeOf(Join({Bytes(valid.begin(), at(end)), Bytes(at(begin), valid.end())}));
      }
    }
  }
}

}  // namespace
}  // namespace bulkhead::admission
