#include "cli/engine_support.h"

#include <gtest/gtest.h>

namespace bulkhead::cli {
namespace {

EngineInfo Engine(std::string until) {
  return {"wasmtime", "48.0.8", std::move(until), true};
}

TEST(EngineSupport, TheLastDayIsStillSupported) {
  const MachineCheck check = CheckEngine(Engine("2028-08-20"), "2028-08-20");
  EXPECT_EQ(check.state, CheckState::kOk);
  EXPECT_EQ(check.finding, "wasmtime 48.0.8, linked into the worker, supported until 2028-08-20");
  EXPECT_EQ(check.fix, "");
}

TEST(EngineSupport, TheDayAfterItIsDegraded) {
  const MachineCheck check = CheckEngine(Engine("2028-08-20"), "2028-08-21");
  EXPECT_EQ(check.state, CheckState::kDegraded);
  EXPECT_NE(check.finding.find("out of support since 2028-08-20"), std::string::npos);
  EXPECT_NE(check.cost, "");
  EXPECT_NE(check.fix, "");
}

TEST(EngineSupport, AnEngineOfWhichNothingIsKnownIsDegraded) {
  EXPECT_EQ(CheckEngine(Engine(""), "2026-11-30").state, CheckState::kDegraded);
}

TEST(EngineSupport, ThisBuildKnowsItsEngine) {
  const EngineInfo engine = ThisEngine();
  EXPECT_EQ(engine.name, "wasmtime");
  EXPECT_FALSE(engine.version.empty());
  EXPECT_EQ(Today().size(), std::string_view("2028-08-20").size());
}

}  // namespace
}  // namespace bulkhead::cli
