// Every refusal of the sketch profile, each on a module that is right but for one thing.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "admission/admit.h"
#include "admission/test_modules.h"
#include "contract/guest_abi.h"
#include "support/sketch_module.h"

namespace bulkhead::admission {
namespace {

using test::CustomSection;
using test::SketchSections;
using test::SketchText;

Bytes BytesOf(std::string_view text) {
  return {text.begin(), text.end()};
}

Bytes Sketch(std::string text, std::string_view sections) {
  return Join({Wat(text), BytesOf(sections)});
}

std::string Codes(const Inspection& inspection) {
  std::string codes;
  for (const Refusal& refusal : inspection.refusals) {
    codes += codes.empty() ? "" : " ";
    codes += refusal.code;
  }
  return codes;
}

std::string Inspect(const Bytes& bytes, const ModulePolicy& policy = {}) {
  EXPECT_FALSE(bytes.empty());
  const Inspection inspection = InspectBytes(bytes, policy);
  EXPECT_EQ(inspection.info.profile, Profile::kSketch);
  for (const Refusal& refusal : inspection.refusals) {
    EXPECT_FALSE(refusal.detail.empty()) << refusal.code;
  }
  return Codes(inspection);
}

std::string Replaced(std::string text, std::string_view what, std::string_view by) {
  const std::size_t at = text.find(what);
  EXPECT_NE(at, std::string::npos) << what;
  return at == std::string::npos ? text : text.replace(at, what.size(), by);
}

TEST(OneShot, G1FixturesAreAdmitted) {
  for (const std::string_view name : {"empty", "exit", "trap", "loop", "wait", "cap", "fault",
                                      "startloop", "starttrap", "childloop", "twospawn"}) {
    EXPECT_EQ(Inspect(Sketch(SketchText(test::SketchFixture(name)), SketchSections())), "") << name;
  }
  EXPECT_EQ(Inspect(Sketch(SketchText({.operations = true}), SketchSections())), "");
}

struct TextCase {
  std::string_view what;
  std::string_view by;
  std::string_view codes;
};

TEST(OneShot, G1EveryPartOfTheModuleIsChecked) {
  const TextCase rows[] = {
      // memory
      {"(memory 17 16384 shared)", "(memory 17 16384)", "unshared-memory"},
      {"(memory 17 16384 shared)", "(memory 16 16384 shared)", "threaded-memory-mismatch"},
      {"(memory 17 16384 shared)", "(memory 17 16383 shared)", "threaded-memory-mismatch"},
      {"(memory 17 16384 shared)", "(memory 17 shared)",
       "shared-memory-without-maximum threaded-memory-mismatch"},
      {"(memory 17 16384 shared)", "(memory 17 16 shared)",
       "memory-initial-exceeds-maximum threaded-memory-mismatch"},
      {"(memory 17 16384 shared)", "(memory i64 17 16384 shared)", "memory64"},
      {"\"env\" \"memory\"", "\"env\" \"mem\"", "forbidden-import"},
      {"(import \"env\" \"memory\"",
       "(import \"env\" \"other\" (memory 1 2 shared))"
       "(import \"env\" \"memory\"",
       "multiple-memory-imports forbidden-import threaded-memory-mismatch"},
      {"(export \"memory\" (memory 0))", "(memory 1) (export \"memory\" (memory 0))",
       "defined-memory-forbidden"},
      {"(start $init)", "(start $init) (memory 1 1 shared)",
       "defined-shared-memory defined-memory-forbidden"},
      // imports
      {"\"kernel_yield\" (func $kernel_yield)", "\"kernel_yield\" (func $kernel_yield (param i32))",
       "import-type-mismatch"},
      {"\"kernel_yield\"", "\"kernel_sleep\"", "forbidden-import missing-required-import"},
      {"\"sched_yield\"", "\"random_get\"", "forbidden-import"},
      {"(import \"wasi\" \"thread-spawn\"",
       "(import \"env\" \"g\" (global i32))"
       "(import \"wasi\" \"thread-spawn\"",
       "forbidden-import"},
      {"(import \"wasi\" \"thread-spawn\"",
       "(import \"bulkhead:v1\" \"kernel_yield\" (func))(import \"wasi\" \"thread-spawn\"",
       "forbidden-import"},
      // exports
      {"(export \"memory\" (memory 0))", "", "memory-export-mismatch"},
      {"(export \"memory\" (memory 0))", "(table 1 funcref)(export \"memory\" (table 0))",
       "memory-export-mismatch"},
      {"(export \"_start\")", "(export \"_begin\")", "export-not-allowed export-not-allowed"},
      {"(export \"bulkhead-run\") (result i32) (i32.const 0)", "(export \"bulkhead-run\")",
       "import-type-mismatch"},
      {"(start $init)", "(start $init) (global (export \"g\") i32 (i32.const 0))",
       "export-not-allowed"},
      // start section
      {"(start $init)", "", "start-mismatch"},
      {"(func $init", "(func $init (param i32)", "start-mismatch"},
  };
  for (const TextCase& row : rows) {
    const std::string text = Replaced(SketchText({}), row.what, row.by);
    EXPECT_EQ(Inspect(Sketch(text, SketchSections())), row.codes) << row.what << " -> " << row.by;
  }
}

TEST(OneShot, G1WhatIsMissingIsNamed) {
  const std::string own_memory =
      Replaced(SketchText({.extra = "(memory 17 16384)"}),
               R"((import "env" "memory" (memory 17 16384 shared)))", "");
  EXPECT_EQ(Inspect(Sketch(own_memory, SketchSections())),
            "defined-memory-forbidden missing-shared-memory");
  const std::string no_yield =
      Replaced(SketchText({.extra = "(func $kernel_yield)"}),
               R"((import "bulkhead:v1" "kernel_yield" (func $kernel_yield)))", "");
  EXPECT_EQ(Inspect(Sketch(no_yield, SketchSections())), "missing-required-import");
  EXPECT_EQ(Inspect(Sketch(SketchText({}), CustomSection("other", "x") + SketchSections())),
            "forbidden-custom-section");
}

TEST(OneShot, G1OperationsComeWhole) {
  const std::string text = SketchText({.operations = true});
  for (const std::string_view name : {"operation_submit", "operation_poll", "operation_yield"}) {
    std::string without = text;
    const std::size_t begin = without.find("(import \"bulkhead:v1\" \"" + std::string(name));
    without.erase(begin, without.find('\n', begin) - begin);
    EXPECT_EQ(Inspect(Sketch(without, SketchSections())), "missing-required-import") << name;
  }
}

TEST(OneShot, G1TheMemoryHasToFitThePolicy) {
  ModulePolicy policy;
  for (const std::uint64_t bytes : {(1ULL << 30) - 1, 1ULL << 16, 0ULL}) {
    policy.memory_bytes_max = bytes;
    EXPECT_EQ(Inspect(Sketch(SketchText({}), SketchSections()), policy),
              "shared-memory-exceeds-policy")
        << bytes;
  }
  for (const std::string_view pages : {"17 16385", "16385 16385"}) {
    const std::string text =
        Replaced(SketchText({}), "17 16384 shared", fmt::format("{} shared", pages));
    EXPECT_EQ(Inspect(Sketch(text, SketchSections())),
              "shared-memory-exceeds-policy threaded-memory-mismatch")
        << pages;
  }
}

TEST(OneShot, G1TheManifestHasToBeExact) {
  const std::string features = CustomSection(contract::kFeaturesSection, contract::FeaturesBytes());
  const std::string manifest = contract::ManifestText();
  const auto with = [&](const std::string& sections) {
    return Inspect(Sketch(SketchText({}), features + sections));
  };
  const auto section = [](const std::string& text) {
    return CustomSection(contract::kManifestSection, text);
  };
  EXPECT_EQ(with(""), "missing-metadata");
  EXPECT_EQ(with(section(manifest) + section(manifest)), "duplicate-metadata");
  const std::pair<std::string_view, std::string_view> skews[] = {
      {"bulkhead guest contract", "something else"},
      {"operations 1\n", "operations 0\n"},
      {"operations 1\n", "operations 2\n"},
      {"operations 1\n", ""},
      {"abi 1\n", "abi 2\n"},
      {"namespace bulkhead:v1", "namespace bulkhead:v2"},
      {"operation 13 url-grant unavailable", "operation 13 url-grant"},
  };
  for (const auto& [what, by] : skews) {
    EXPECT_EQ(with(section(Replaced(manifest, what, by))), "metadata-mismatch") << what;
  }
  EXPECT_EQ(with(section(manifest + " ")), "metadata-mismatch");
  EXPECT_EQ(with(section(manifest.substr(1))), "metadata-mismatch");
  EXPECT_EQ(with(section("")), "metadata-mismatch");
}

TEST(OneShot, G1FeaturesHaveToBeExact) {
  const std::string manifest = CustomSection(contract::kManifestSection, contract::ManifestText());
  const std::string features = contract::FeaturesBytes();
  const auto with = [&](const std::string& sections) {
    return Inspect(Sketch(SketchText({}), manifest + sections));
  };
  const auto section = [](const std::string& content) {
    return CustomSection(contract::kFeaturesSection, content);
  };
  EXPECT_EQ(with(""), "missing-target-features");
  EXPECT_EQ(with(section(features) + section(features)), "target-features-mismatch");
  const std::string large(contract::kCustomSectionBytesMax + 1, 'x');
  EXPECT_EQ(with(section(large)), "metadata-too-large");
  EXPECT_EQ(with(section(large.substr(1))), "target-features-mismatch");
  for (const std::string& content :
       {std::string(), features + "x", features.substr(0, features.size() - 1),
        Replaced(features, "+", "-"), Replaced(features, "atomics", "atomicx"),
        Replaced(features, "sign-ext", "atomics\x08"), std::string("\xFF\xFF\xFF\xFF\x0F")}) {
    EXPECT_EQ(with(section(content)), "target-features-mismatch");
  }
}

TEST(OneShot, G1DescriptionsAreBounded) {
  const std::string large(contract::kCustomSectionBytesMax + 1, 'x');
  for (const std::string_view name : contract::CustomSections()) {
    EXPECT_EQ(
        Inspect(Sketch(SketchText({}), CustomSection(name, large.substr(1)) + SketchSections())),
        "")
        << name;
    EXPECT_EQ(Inspect(Sketch(SketchText({}), CustomSection(name, large) + SketchSections())),
              "metadata-too-large")
        << name;
  }
}

}  // namespace
}  // namespace bulkhead::admission
