#include "cli/report_json.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "base/strings.h"

namespace bulkhead::cli {
namespace {

using Json = nlohmann::json;

Json Parsed(const RunRecord& record) {
  const std::string text = RunReportJson(record);
  EXPECT_TRUE(text.ends_with("}\n"));
  EXPECT_EQ(ToValidUtf8(text), text);
  return Json::parse(text);
}

TEST(ReportJson, CompletedRunWithOutput) {
  RunRecord record;
  record.report.outcome.code = OutcomeCode::kWorkerCompleted;
  record.report.outcome.completed_as = CompletedAs::kExited;
  record.report.outcome.guest_exit = 0;
  record.report.stage = Stage::kPublish;
  record.report.durations[static_cast<std::size_t>(Stage::kCompile)] =
      std::chrono::microseconds(1500);
  record.report.output = OutputReport{"/tmp/o", 3, std::string(64, 'a'), true};
  record.report.limits = {{"fuel", 3, 10, false}};
  record.report.worker_pid = 42;
  record.report.worker_exit = "exit 0";
  const Json json = Parsed(record);
  EXPECT_EQ(json["schema"], "bulkhead.run-report/1");
  EXPECT_EQ(json["code"], "worker-completed");
  EXPECT_EQ(json["terminal"],
            Json({{"kind", "completed"}, {"outcome", "exited"}, {"trigger", nullptr}}));
  EXPECT_EQ(json["stage"], "publish");
  EXPECT_EQ(json["durations_ms"]["compile"], 1.5);
  EXPECT_FALSE(json["durations_ms"].contains("done"));
  EXPECT_EQ(json["output"]["published"], true);
  EXPECT_EQ(json["limits"][0],
            Json({{"name", "fuel"}, {"used", 3}, {"cap", 10}, {"reached", false}}));
  EXPECT_EQ(json["worker_pid"], 42);
  EXPECT_TRUE(json["trap"].is_null());
  EXPECT_TRUE(json["masked_code"].is_null());
}

TEST(ReportJson, StoppedRunNamesItsTrigger) {
  RunRecord record;
  record.report.outcome.code = OutcomeCode::kForcedContainmentCancelled;
  record.report.stop = StopCause::kCancelled;
  record.signal = 15;
  record.exit_status = 143;
  const Json json = Parsed(record);
  EXPECT_EQ(json["terminal"], Json({{"kind", "forced-containment"},
                                    {"outcome", "forced-containment-cancelled"},
                                    {"trigger", "cancelled"}}));
  EXPECT_EQ(json["forced"], true);
  EXPECT_EQ(json["signal"], 15);
  EXPECT_EQ(json["exit_status"], 143);
}

TEST(Case, G35ReportIsValidUtf8WhateverTheNames) {
  RunRecord record;
  const std::string odd = "a\xff\"\n\x1b\\b";
  record.module.path = odd;
  record.report.outcome.code = OutcomeCode::kTrapped;
  record.report.outcome.trap = TrapInfo{odd, odd, 1, {odd}};
  record.report.diagnostic = odd;
  record.report.worker_stderr_tail = odd;
  record.report.containment = {odd};
  record.report.output = OutputReport{odd, 0, "", false};
  const Json json = Parsed(record);
  EXPECT_EQ(json["module"]["path"], "a\xEF\xBF\xBD\"\n\x1b\\b");
  EXPECT_EQ(json["module"]["path_hex"], "61ff220a1b5c62");
  EXPECT_EQ(json["output"]["path_hex"], "61ff220a1b5c62");
  EXPECT_EQ(json["trap"]["backtrace"][0], "a\xEF\xBF\xBD\"\n\x1b\\b");
  record.module.path = "ordinary";
  EXPECT_FALSE(Parsed(record)["module"].contains("path_hex"));
}

TEST(ReportJson, EventLines) {
  EXPECT_EQ(StageEventJson("run", {7, Stage::kHandOver, 4711}),
            "{\"event\":\"stage\",\"task\":\"run\",\"stage\":\"hand-over\",\"worker_pid\":4711}\n");
  EXPECT_EQ(EndEventJson("module-refused/a\"b", 126),
            "{\"event\":\"end\",\"code\":\"module-refused/a\\\"b\",\"exit_status\":126}\n");
}

TEST(RunRecord, ErrorsBeforeTheRunHaveOutcomes) {
  const struct {
    Error error;
    std::string_view code;
    int status;
  } rows[] = {
      {ModuleFailure({ErrorCode::kNotFound, "m", 2, ""}), "module-refused/not-found", 127},
      {ModuleFailure({ErrorCode::kIo, "m", 13, ""}), "module-refused/unreadable", 126},
      {ModuleFailure({ErrorCode::kModuleRefused, "m", 0, "module-too-large"}),
       "module-refused/module-too-large", 126},
      {ModuleFailure({ErrorCode::kInvalidArgument, "m", 0, ""}), "worker-invalid-configuration",
       122},
      {{ErrorCode::kModuleRefused, "m", 0, "forbidden-import"},
       "module-refused/forbidden-import",
       126},
      {{ErrorCode::kInvalidArgument, "m", 0, ""}, "worker-invalid-configuration", 122},
      {{ErrorCode::kOutput, "m", 0, ""}, "worker-output-grant", 125},
      {{ErrorCode::kNotFound, "m", 0, ""}, "worker-launch", 127},
      {{ErrorCode::kResourceExhausted, "m", 0, ""}, "worker-launch", 125},
      {{ErrorCode::kLaunch, "m", 0, "deadline-exceeded"}, "deadline-exceeded", 124},
      {{ErrorCode::kLaunch, "m", 0, "forced-containment-cancelled"},
       "forced-containment-cancelled",
       130},
      {{ErrorCode::kLaunch, "m", 0, "compile-limit"}, "compile-limit", 126},
      {{ErrorCode::kProtocol, "m", 0, "bad-magic"}, "worker-protocol", 125},
  };

  for (const auto& row : rows) {
    RunRecord record;
    RecordFailure(row.error, record);
    EXPECT_EQ(record.report.outcome.CodeText(), row.code);
    EXPECT_EQ(record.exit_status, row.status) << row.code;
    EXPECT_EQ(record.report.diagnostic, row.error.message);
    const Json json = Parsed(record);
    EXPECT_EQ(json["code"], row.code);
    EXPECT_EQ(json["terminal"]["trigger"].is_null(), record.report.stop == StopCause::kNone);
  }
}

}  // namespace
}  // namespace bulkhead::cli
