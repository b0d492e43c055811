// The JSON of a run: the report (schema bulkhead.run-report/1,
// docs/report-schema/run-report-1.json) and the lines of
// --status-fd. Pure; the text is valid UTF-8 whatever the strings hold: an invalid byte becomes
// U+FFFD.
#pragma once

#include <bulkhead/observer.h>

#include <string>
#include <string_view>

#include "cli/repeat.h"
#include "cli/run_record.h"

namespace bulkhead::cli {

inline constexpr std::string_view kRunReportSchema = "bulkhead.run-report/1";
inline constexpr std::string_view kRepeatSummarySchema = "bulkhead.repeat-summary/1";

// Pretty-printed, ends with a newline.
std::string RunReportJson(const RunRecord& record);
// The same on one line.
std::string RunReportLine(const RunRecord& record);
// The last line of the reports of --repeat.
std::string RepeatSummaryLine(const RepeatResult& result, const RepeatPlan& plan);

// One line each, with its newline. `task`: "convert" or "run".
std::string StageEventJson(std::string_view task, const RunEvent& event);
std::string EndEventJson(std::string_view code, int exit_status);

}  // namespace bulkhead::cli
