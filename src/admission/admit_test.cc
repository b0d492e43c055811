#include "admission/admit.h"

#include <fmt/core.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "admission/module_policy.h"
#include "admission/policy_checker.h"
#include "admission/preview1_imports.h"
#include "admission/test_modules.h"
#include "contract/guest_abi.h"

namespace bulkhead::admission {
namespace {

constexpr std::string_view kEmptyStart = "(func (export \"_start\"))";

Inspection InspectWat(std::string_view fields, const ModulePolicy& policy = {}) {
  const Bytes bytes = Wat(fmt::format("(module {})", fields));
  EXPECT_FALSE(bytes.empty()) << "wat2wasm refuses: " << fields;
  return InspectBytes(bytes, policy);
}

// The codes in order, joined by blanks.
std::string Codes(const Inspection& inspection) {
  std::string codes;
  for (const Refusal& refusal : inspection.refusals) {
    codes += (codes.empty() ? "" : " ") + refusal.code;
  }
  return codes;
}

std::string FirstDetail(const Inspection& inspection) {
  return inspection.refusals.empty() ? std::string() : inspection.refusals.front().detail;
}

std::string WithStart(std::string_view fields) {
  return fmt::format("{} {}", fields, kEmptyStart);
}

std::string CodesOf(std::string_view fields_before_start) {
  return Codes(InspectWat(WithStart(fields_before_start)));
}

TEST(OneShot, G1AdmitsCommands) {
  EXPECT_EQ(CodesOf(""), "");
  const Inspection rich = InspectBytes(Wat(kRichCommand), {});
  EXPECT_EQ(Codes(rich), "");
  EXPECT_EQ(rich.info.profile, Profile::kWasi);
  EXPECT_EQ(rich.info.functions, 2U);
  EXPECT_EQ(rich.info.import_count, 2U);
  EXPECT_EQ(rich.info.export_count, 5U);
  EXPECT_TRUE(rich.info.has_start_section);
  ASSERT_EQ(rich.info.imports.size(), 2U);
  EXPECT_EQ(rich.info.imports[0].module, "wasi_snapshot_preview1");
  EXPECT_EQ(rich.info.imports[0].name, "fd_write");
  EXPECT_EQ(rich.info.imports[0].kind, "function");
  EXPECT_EQ(rich.info.imports[0].type, "(i32, i32, i32, i32) -> i32");
  ASSERT_EQ(rich.info.memories.size(), 2U);
  EXPECT_EQ(rich.info.memories[0].pages_min, 2U);
  EXPECT_EQ(rich.info.memories[0].pages_max, 5U);
  EXPECT_FALSE(rich.info.memories[0].imported);
}

TEST(OneShot, G1RefusesWhatIsNoModule) {
  EXPECT_EQ(Codes(InspectBytes({}, {})), "empty-module");
  const Bytes elf = {0x7F, 'E', 'L', 'F', 2, 1, 1, 0};
  EXPECT_EQ(Codes(InspectBytes(elf, {})), "invalid-binary");
  EXPECT_EQ(FirstDetail(InspectBytes(elf, {})),
            "at byte 0: expected the magic bytes 00 61 73 6d, found 7f454c46");
  EXPECT_EQ(InspectBytes(elf, {}).info.profile, Profile::kAuto);
  const Bytes component = {0x00, 0x61, 0x73, 0x6D, 0x0D, 0x00, 0x01, 0x00};
  EXPECT_EQ(Codes(InspectBytes(component, {})), "component");
  const Bytes version = {0x00, 0x61, 0x73, 0x6D, 0x0B, 0x00, 0x00, 0x00};
  EXPECT_EQ(Codes(InspectBytes(version, {})), "unsupported-version");
  const std::string text = ";; hello\n(module)";
  EXPECT_EQ(Codes(InspectBytes(Bytes(text.begin(), text.end()), {})), "text-module");
  EXPECT_EQ(Codes(InspectBytes(Module({StartType(), StartType()}), {})), "duplicate-section");
}

TEST(OneShot, G1RefusesModulesAboveThePolicysSize) {
  ModulePolicy policy;
  const Bytes bytes = SmallestCommand();
  policy.module_bytes_max = bytes.size();
  EXPECT_EQ(Codes(InspectBytes(bytes, policy)), "");
  --policy.module_bytes_max;
  const Inspection inspection = InspectBytes(bytes, policy);
  EXPECT_EQ(Codes(inspection), "module-too-large");
  EXPECT_EQ(FirstDetail(inspection), fmt::format("the module has {} bytes, at most {} are allowed",
                                                 bytes.size(), bytes.size() - 1));
}

TEST(OneShot, G1RefusesMemoriesThatCannotBeLimited) {
  EXPECT_EQ(CodesOf("(memory i64 1)"), "memory64");
  EXPECT_EQ(CodesOf("(memory 1) (memory i64 1)"), "memory64");
  EXPECT_EQ(CodesOf("(memory 1) (memory 2)"), "");
  const Bytes page_of_one = Module(
      {StartType(), StartFunction(), Section(5, {1, 0x08, 1, 0}), StartExport(), StartCode()});
  EXPECT_EQ(Codes(InspectBytes(page_of_one, {})), "unsupported-memory-page-size");
  const Bytes no_maximum =
      Module({StartType(), StartFunction(), Section(5, {1, 0x02, 1}), StartExport(), StartCode()});
  EXPECT_EQ(Codes(InspectBytes(no_maximum, {})),
            "shared-memory-without-maximum defined-shared-memory");
  EXPECT_EQ(CodesOf("(memory 3 2)"), "memory-initial-exceeds-maximum");
}

TEST(OneShot, G1RefusesMinimumAbovePolicyWithBothNumbers) {
  ModulePolicy policy;
  policy.memory_bytes_max = 3 * 65536;
  EXPECT_EQ(Codes(InspectWat(WithStart("(memory 3)"), policy)), "");
  const Inspection larger = InspectWat(WithStart("(memory 4)"), policy);
  EXPECT_EQ(Codes(larger), "memory-exceeds-policy");
  EXPECT_EQ(FirstDetail(larger),
            "the module's memories begin with 262144 bytes, at most 196608 are allowed");
  // Memories count together; a maximum does not count.
  EXPECT_EQ(Codes(InspectWat(WithStart("(memory 2) (memory 2)"), policy)), "memory-exceeds-policy");
  EXPECT_EQ(Codes(InspectWat(WithStart("(memory 1 65536)"), policy)), "");
  // Sums of 64-bit memories do not wrap.
  const Bytes wide = Module({StartType(), StartFunction(),
                             Section(5, Join({{2}, {4}, Leb(1ULL << 48), {4}, Leb(1ULL << 48)})),
                             StartExport(), StartCode()});
  EXPECT_EQ(Codes(InspectBytes(wide, {})), "memory64 memory64 memory-exceeds-policy");
}

TEST(Case, G13RefusesSharedMemoriesNoLimitWouldHoldFor) {
  EXPECT_EQ(CodesOf("(memory 1 65536 shared)"), "defined-shared-memory");
  ModulePolicy policy;
  policy.memory_bytes_max = 16ULL << 20;
  const Inspection imported =
      InspectWat(WithStart("(import \"env\" \"memory\" (memory 8192 8192 shared))"), policy);
  EXPECT_EQ(imported.refusals.front().code, "memory-exceeds-policy");
  EXPECT_EQ(FirstDetail(imported),
            "the module's memories begin with 536870912 bytes, at most 16777216 are allowed");
}

TEST(Case, G38RefusesTheWaitQueueGuest) {
  EXPECT_EQ(CodesOf("(memory 1024 1024 shared)"), "defined-shared-memory");
}

TEST(OneShot, G1RefusesForbiddenImports) {
  const auto detail = [](std::string_view import) {
    const Inspection inspection = InspectWat(WithStart(import));
    EXPECT_EQ(Codes(inspection), "forbidden-import") << import;
    return FirstDetail(inspection);
  };
  EXPECT_EQ(detail("(import \"env\" \"abort\" (func (param i32)))"),
            "the module imports function 'env'.'abort'; profile 'wasi' offers the functions of "
            "wasi_snapshot_preview1 only");
  detail("(import \"wasi_snapshot_preview1\" \"fd_open\" (func (param i32) (result i32)))");
  detail("(import \"wasi_unstable\" \"fd_close\" (func (param i32) (result i32)))");
  detail("(import \"env\" \"t\" (table 1 funcref))");
  detail("(import \"env\" \"g\" (global i32))");
  detail("(import \"env\" \"e\" (tag (param i32)))");
  detail("(import \"wasi_snapshot_preview1\" \"fd_close\" (global i32))");
  EXPECT_EQ(
      detail("(import \"e\\00\\1b[2J\" \"f\" (func))"),
      "the module imports function 'e\\x00\\x1b[2J'.'f'; profile 'wasi' offers the functions of "
      "wasi_snapshot_preview1 only");
  EXPECT_EQ(CodesOf("(import \"env\" \"memory\" (memory 1))"), "imported-memory");
}

TEST(OneShot, G1NamesInRefusalsAreCut) {
  const std::string name(5'000, 'n');
  const Inspection inspection =
      InspectWat(WithStart(fmt::format("(import \"{}\" \"{}\" (func))", name, name)));
  EXPECT_EQ(Codes(inspection), "forbidden-import");
  EXPECT_LT(FirstDetail(inspection).size(), 400U);
  EXPECT_EQ(inspection.info.imports.at(0).name, std::string(kListedNameBytesMax, 'n'));
}

TEST(OneShot, G1RefusesImportsOfAnotherTypeShowingBoth) {
  const Inspection inspection = InspectWat(WithStart(
      "(import \"wasi_snapshot_preview1\" \"fd_close\" (func (param i64) (result i32)))"));
  EXPECT_EQ(Codes(inspection), "import-type-mismatch");
  EXPECT_EQ(
      FirstDetail(inspection),
      "the module imports 'wasi_snapshot_preview1'.'fd_close' as (i64) -> i32, it is (i32) -> i32");
  // A struct where a function type belongs is a mismatch, not an empty signature.
  const Bytes import = Section(2, Join({{1}, Name(kPreview1Module), Name("sched_yield"), {0, 1}}));
  const Bytes bytes = Module({Section(1, {2, 0x60, 0, 0, 0x5F, 0}), import, StartFunction(),
                              Section(7, Join({{1}, Name("_start"), {0, 1}})), StartCode()});
  EXPECT_EQ(Codes(InspectBytes(bytes, {})), "import-type-mismatch");
}

TEST(OneShot, G1RefusesModulesWithoutEntryPoint) {
  EXPECT_EQ(Codes(InspectBytes(Header(), {})), "missing-start");
  EXPECT_EQ(FirstDetail(InspectWat("")), "the module exports no function '_start'");
  const Inspection reactor = InspectWat("(func (export \"_initialize\"))");
  EXPECT_EQ(Codes(reactor), "missing-start");
  EXPECT_EQ(
      FirstDetail(reactor),
      "the module is a reactor (it exports '_initialize' and no '_start'); build it as a command");
  const Inspection global = InspectWat("(global (export \"_start\") i32 (i32.const 0))");
  EXPECT_EQ(Codes(global), "missing-start");
  EXPECT_EQ(FirstDetail(global), "the module exports '_start' as a global, not as a function");
  const Inspection typed =
      InspectWat("(func (export \"_start\") (param i32) (result i64) (i64.const 0))");
  EXPECT_EQ(Codes(typed), "entrypoint-mismatch");
  EXPECT_EQ(FirstDetail(typed), "the module exports '_start' as (i32) -> i64, it must be () -> ()");
}

TEST(OneShot, G1CollectsRefusalsInOrder) {
  ModulePolicy policy;
  policy.profile = Profile::kSketch;
  EXPECT_EQ(Codes(InspectWat("(import \"wasi_snapshot_preview1\" \"fd_close\" (func))"
                             "(import \"env\" \"f\" (func)) (import \"env\" \"memory\" (memory 1))"
                             "(memory 1 65536 shared) (memory 30000)",
                             policy)),
            "defined-shared-memory memory-exceeds-policy profile-mismatch import-type-mismatch "
            "forbidden-import imported-memory missing-start");
}

TEST(OneShot, G1ListsABoundedNumberOfRefusedImports) {
  std::string imports;
  for (int i = 0; i < 1'500; ++i) {
    imports += fmt::format("(import \"env\" \"f{}\" (func))", i);
  }
  const Inspection inspection = InspectWat(WithStart(imports));
  ASSERT_EQ(inspection.refusals.size(), kRefusalsListedMax + 1);
  EXPECT_EQ(inspection.refusals.back().code, "forbidden-import");
  EXPECT_EQ(inspection.refusals.back().detail, "1468 more imports are refused");
  EXPECT_EQ(inspection.info.imports.size(), kListedMax);
  EXPECT_EQ(inspection.info.import_count, 1'500U);
}

struct ProfileCase {
  std::string fields;
  Profile profile;
};

std::vector<ProfileCase> ProfileCases() {
  const std::string spawn = "(import \"wasi\" \"thread-spawn\" (func (param i32) (result i32)))";
  const std::string shared = "(import \"env\" \"memory\" (memory 1 2 shared))";
  return {
      {"", Profile::kWasi},
      {spawn + shared, Profile::kWasiThreads},
      {shared + "(func (export \"wasi_thread_start\") (param i32 i32))", Profile::kWasiThreads},
      {"(import \"bulkhead:v1\" \"kernel_yield\" (func))", Profile::kSketch},
      {"(import \"bulkhead:v1\" \"kernel_yield\" (func))" + spawn + shared, Profile::kSketch},
      {"(@custom \"bulkhead.abi\" \"x\")", Profile::kSketch},
  };
}

TEST(ModulePolicy, ProfilesAreRecognised) {
  for (const ProfileCase& row : ProfileCases()) {
    Bytes bytes = Wat(fmt::format("(module {})", WithStart(row.fields)));
    if (row.fields.starts_with("(@custom")) {
      bytes = Join({SmallestCommand(), Custom(contract::kManifestSection, {'x'})});
    }
    ASSERT_FALSE(bytes.empty()) << row.fields;
    const Inspection inspection = InspectBytes(bytes, {});
    EXPECT_EQ(inspection.info.profile, row.profile) << row.fields;
  }
}

struct ThreadsCase {
  std::string_view fields;
  std::string_view codes;
};

TEST(ModulePolicy, WhatAModuleWithThreadsNeeds) {
  const std::string spawn = R"((import "wasi" "thread-spawn" (func (param i32) (result i32))))";
  const std::string memory = R"((import "any" "name" (memory 1 65536 shared)))";
  const std::string entry = R"((func (export "wasi_thread_start") (param i32 i32)))";
  const ThreadsCase rows[] = {
      {"SPAWN MEMORY ENTRY", ""},
      {"MEMORY ENTRY", ""},
      {"MEMORY", ""},
      {R"(SPAWN MEMORY ENTRY (export "memory" (memory 0)))", ""},
      {"SPAWN ENTRY", "missing-shared-memory"},
      {R"(SPAWN (import "e" "m" (memory 1 2)) ENTRY)", "unshared-memory"},
      {R"(SPAWN MEMORY (import "e" "m" (memory 1 2 shared)) ENTRY)", "multiple-memory-imports"},
      {"SPAWN MEMORY", "missing-thread-start"},
      {R"(SPAWN MEMORY (func (export "wasi_thread_start") (param i32)))", "entrypoint-mismatch"},
      {R"(SPAWN MEMORY (global (export "wasi_thread_start") i32 (i32.const 0)))",
       "missing-thread-start"},
      {R"((import "wasi" "thread-spawn" (func (result i32))) MEMORY ENTRY)",
       "import-type-mismatch"},
      {R"(SPAWN (import "wasi" "other" (func)) MEMORY ENTRY)", "forbidden-import"},
      {R"(SPAWN (import "env" "g" (global i32)) MEMORY ENTRY)", "forbidden-import"},
      {R"(SPAWN (import "env" "memory" (memory 1 shared)) ENTRY)", "shared-memory-without-maximum"},
      {R"(SPAWN (import "env" "memory" (memory 20000 65536 shared)) ENTRY)",
       "memory-exceeds-policy"},
      {"SPAWN MEMORY ENTRY (memory 1 1 shared)", "defined-shared-memory"},
  };
  for (const ThreadsCase& row : rows) {
    std::string fields(row.fields);
    for (const auto& [word, text] :
         {std::pair("SPAWN", spawn), std::pair("MEMORY", memory), std::pair("ENTRY", entry)}) {
      if (const std::size_t at = fields.find(word); at != std::string::npos) {
        fields.replace(at, std::string_view(word).size(), text);
      }
    }
    const Inspection inspection = InspectWat(WithStart(fields), {});
    EXPECT_EQ(Codes(inspection), row.codes) << row.fields;
    EXPECT_EQ(inspection.info.profile, Profile::kWasiThreads) << row.fields;
  }
}

TEST(ModulePolicy, AnotherProfileThanAskedForIsAMismatch) {
  for (const Profile asked : {Profile::kWasiThreads, Profile::kSketch}) {
    ModulePolicy policy;
    policy.profile = asked;
    const Inspection inspection = InspectWat(WithStart(""), policy);
    EXPECT_EQ(Codes(inspection), "profile-mismatch");
    EXPECT_EQ(FirstDetail(inspection),
              fmt::format("the module has profile 'wasi', '{}' was asked for", ProfileName(asked)));
  }
  ModulePolicy wasi;
  wasi.profile = Profile::kWasi;
  EXPECT_EQ(Codes(InspectWat(WithStart(""), wasi)), "");
  EXPECT_EQ(Codes(InspectWat(WithStart("(import \"bulkhead:v1\" \"f\" (func))"), wasi)),
            "profile-mismatch missing-shared-memory missing-metadata forbidden-import "
            "missing-required-import memory-export-mismatch export-not-allowed "
            "export-not-allowed export-not-allowed start-mismatch missing-target-features");
}

TEST(ModulePolicy, ProfileNamesRoundTrip) {
  for (const Profile profile :
       {Profile::kAuto, Profile::kWasi, Profile::kWasiThreads, Profile::kSketch}) {
    EXPECT_EQ(ParseProfile(ProfileName(profile)), profile);
  }
  EXPECT_EQ(ProfileName(Profile::kWasiThreads), "wasi-threads");
  EXPECT_FALSE(ParseProfile("WASI"));
  EXPECT_FALSE(ParseProfile(""));
}

TEST(Preview1Imports, TableIsSortedAndAdmitsItself) {
  EXPECT_TRUE(std::is_sorted(kPreview1Imports.begin(), kPreview1Imports.end(),
                             [](const auto& a, const auto& b) { return a.name < b.name; }));
  for (const Preview1Function& entry : kPreview1Imports) {
    EXPECT_EQ(FindPreview1Function(entry.name), &entry);
  }
  EXPECT_EQ(FindPreview1Function("fd"), nullptr);
  EXPECT_EQ(FindPreview1Function("zzz"), nullptr);
  EXPECT_EQ(FindPreview1Function(""), nullptr);
}

// The table against a toolchain's own declarations.
TEST(Preview1Imports, AgreesWithTheCLibrary) {
  if (!HasClangForWasi()) {
    GTEST_SKIP() << "no clang-14 with wasi-libc and wasm-ld on this machine";
  }
  std::string source = "#include <wasi/api.h>\nvoid *volatile functions[] = {\n";
  std::size_t named = 0;
  for (const Preview1Function& entry : kPreview1Imports) {
    if (entry.name != "proc_raise") {  // the C library does not declare it any more
      source += fmt::format("(void*)__wasi_{},\n", entry.name);
      ++named;
    }
  }
  const Bytes bytes =
      CompileC(source + "};\nint main(void) { return functions[0] == functions[1]; }\n");
  ASSERT_FALSE(bytes.empty());
  const Inspection inspection = InspectBytes(bytes, {});
  EXPECT_EQ(Codes(inspection), "") << FirstDetail(inspection);
  EXPECT_EQ(inspection.info.import_count, named);
}

TEST(Admit, AcceptsACProgram) {
  if (!HasClangForWasi()) {
    GTEST_SKIP() << "no clang-14 with wasi-libc and wasm-ld on this machine";
  }
  const Bytes bytes =
      CompileC("#include <stdio.h>\nint main(void) { return printf(\"hello %d\\n\", 42) < 0; }\n");
  ASSERT_FALSE(bytes.empty());
  const Inspection inspection = InspectBytes(bytes, {});
  EXPECT_EQ(Codes(inspection), "") << FirstDetail(inspection);
  EXPECT_EQ(inspection.info.profile, Profile::kWasi);
  EXPECT_GT(inspection.info.functions, 10U);
  EXPECT_EQ(inspection.info.memories.size(), 1U);
  const auto& sections = inspection.info.custom_sections;
  EXPECT_NE(std::find(sections.begin(), sections.end(), "producers"), sections.end());
}

TEST(Admit, TextIsKnownByItsBeginning) {
  const auto text = [](std::string_view start) {
    const Bytes bytes(start.begin(), start.end());
    return LooksLikeText(bytes);
  };
  EXPECT_TRUE(text("(module)"));
  EXPECT_TRUE(text(" \t\r\n(module"));
  EXPECT_TRUE(text(";; line\n;; line\n  (func)"));
  EXPECT_TRUE(text("(; a (; nested ;) b ;)(module)"));
  EXPECT_TRUE(text("(;;)(module)"));
  EXPECT_TRUE(text("("));
  EXPECT_FALSE(text(""));
  EXPECT_FALSE(text("  \n"));
  EXPECT_FALSE(text(";; only a comment"));
  EXPECT_FALSE(text("(; never (; closed ;)"));
  EXPECT_FALSE(text("(;)(module)"));
  EXPECT_FALSE(text(";"));
  EXPECT_FALSE(text("module"));
  EXPECT_FALSE(text(std::string_view("\0asm\1\0\0\0", 8)));
  EXPECT_TRUE(text(std::string(kTextLookBytesMax - 1, ' ') + "("));
  EXPECT_FALSE(text(std::string(kTextLookBytesMax, ' ') + "("));
  EXPECT_FALSE(text("(;" + std::string(kTextLookBytesMax, '(') + ";)("));
}

}  // namespace
}  // namespace bulkhead::admission
