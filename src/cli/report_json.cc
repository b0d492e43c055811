#include "cli/report_json.h"

#include <chrono>
#include <optional>
#include <span>

#include <nlohmann/json.hpp>

#include "base/strings.h"
#include "wire/handshake.h"

namespace bulkhead::cli {
namespace {

using Json = nlohmann::ordered_json;

std::string Dump(const Json& json, int indent) {
  return json.dump(indent, ' ', false, Json::error_handler_t::replace) + "\n";
}

double Milliseconds(std::chrono::microseconds duration) {
  return std::chrono::duration<double, std::milli>(duration).count();
}

template <class T>
Json OrNull(const std::optional<T>& value) {
  return value ? Json(*value) : Json(nullptr);
}

// Member `name` is the path; where that is no UTF-8, "<name>_hex" has its exact bytes.
void PutPath(Json& json, const std::string& name, const std::string& path) {
  json[name] = path;
  if (ToValidUtf8(path) != path) {
    std::string bytes;
    for (const char c : path) {
      const auto byte = static_cast<std::uint8_t>(c);
      bytes += ToHex(std::span(&byte, 1));
    }
    json[name + "_hex"] = bytes;
  }
}

Json TerminalJson(const RunReport& report) {
  const Outcome& outcome = report.outcome;
  const bool stopped = outcome.kind() == OutcomeKind::kStopped || outcome.forced();
  Json json;
  json["kind"] = OutcomeKindName(outcome.kind());
  json["outcome"] =
      outcome.completed() ? CompletedAsName(outcome.completed_as) : OutcomeCodeName(outcome.code);
  json["trigger"] = stopped ? Json(StopCauseName(report.stop)) : Json(nullptr);
  return json;
}

Json TrapJson(const std::optional<TrapInfo>& trap) {
  if (!trap) {
    return nullptr;
  }
  return Json{{"code", trap->code},
              {"message", trap->message},
              {"thread", trap->thread},
              {"backtrace", trap->backtrace}};
}

Json OutOfMemoryJson(const std::optional<CgroupMemory>& memory) {
  if (!memory) {
    return nullptr;
  }
  return Json{{"limit_bytes", memory->limit_bytes},
              {"peak_bytes", memory->peak_bytes == 0 ? Json(nullptr) : Json(memory->peak_bytes)},
              {"killed", memory->oom_kills},
              {"limit_reached", memory->limit_reached}};
}

Json DurationsJson(const RunReport& report) {
  Json json;
  for (std::size_t i = 0; i < static_cast<std::size_t>(Stage::kDone); ++i) {
    json[std::string(StageName(static_cast<Stage>(i)))] = Milliseconds(report.durations[i]);
  }
  return json;
}

Json LedgerJson(const WorkerLedger& ledger) {
  return Json{{"spawned", ledger.spawned},
              {"cancel_sent", ledger.cancel_sent},
              {"grace_expired", ledger.grace_expired},
              {"forced", ledger.forced},
              {"reaped", ledger.reaped},
              {"protocol_failures", ledger.protocol_failures},
              {"live_workers", ledger.live_workers},
              {"live_protocol_tasks", ledger.live_protocol_tasks},
              {"pending_root_leases", ledger.pending_root_leases}};
}

Json LimitsJson(const std::vector<LimitUse>& limits) {
  Json json = Json::array();
  for (const LimitUse& limit : limits) {
    json.push_back(Json{{"name", limit.name},
                        {"used", limit.used},
                        {"cap", limit.cap},
                        {"reached", limit.reached}});
  }
  return json;
}

Json OutputJson(const std::optional<OutputReport>& output) {
  if (!output) {
    return nullptr;
  }
  Json json;
  PutPath(json, "path", output->path);
  json["bytes"] = output->bytes;
  json["sha256"] = output->sha256.empty() ? Json(nullptr) : Json(output->sha256);
  json["published"] = output->published;
  return json;
}

Json ModuleJson(const ModuleFacts& module) {
  Json json;
  PutPath(json, "path", module.path);
  json["bytes"] = OrNull(module.bytes);
  json["sha256"] = OrNull(module.sha256);
  json["profile"] = module.profile ? Json(ProfileName(*module.profile)) : Json(nullptr);
  return json;
}

Json CodeJson(const CodeReport& code) {
  return Json{{"source", CodeSourceName(code.source)},
              {"key", code.key.empty() ? Json(nullptr) : Json(code.key)},
              {"stored", code.stored},
              {"problem", code.problem.empty() ? Json(nullptr) : Json(code.problem)}};
}

Json RejectionsJson(const ThreadRejections& rejections) {
  return Json{{"capacity", rejections.capacity},
              {"closing", rejections.closing},
              {"fuel", rejections.fuel},
              {"epoch", rejections.epoch}};
}

Json ReportJson(const RunRecord& record) {
  const RunReport& report = record.report;
  Json json;
  json["schema"] = kRunReportSchema;
  json["build_id"] = wire::BuildId();
  json["code"] = report.outcome.CodeText();
  json["exit_status"] = record.exit_status;
  json["terminal"] = TerminalJson(report);
  json["guest_exit"] = OrNull(report.outcome.guest_exit);
  json["trap"] = TrapJson(report.outcome.trap);
  json["out_of_memory"] = OutOfMemoryJson(report.outcome.out_of_memory);
  json["thread_rejections"] = RejectionsJson(report.outcome.rejections);
  json["stage"] = StageName(report.stage);
  json["forced"] = report.outcome.forced();
  json["stop"] = StopCauseName(report.stop);
  json["signal"] = record.signal == 0 ? Json(nullptr) : Json(record.signal);
  json["masked_code"] = report.masked_code.empty() ? Json(nullptr) : Json(report.masked_code);
  json["diagnostic"] = report.diagnostic;
  json["module"] = ModuleJson(record.module);
  json["output"] = OutputJson(report.output);
  json["compiled_code"] = CodeJson(report.code);
  json["elapsed_ms"] = Milliseconds(report.elapsed);
  json["durations_ms"] = DurationsJson(report);
  json["cpu_ms"] = Milliseconds(report.cpu);
  json["memory_peak_bytes"] = report.memory_peak_bytes;
  json["guest_memory_peak_bytes"] = report.guest_memory_bytes_peak;
  json["memory_growth_refused"] = report.memory_growth_refused;
  json["fuel_used"] = report.fuel_used;
  json["limits"] = LimitsJson(report.limits);
  json["containment"] = report.containment;
  json["ledger"] = LedgerJson(report.ledger);
  json["stdout_bytes"] = report.stdout_bytes;
  json["stdout_undelivered_bytes"] = report.stdout_undelivered_bytes;
  json["stderr_bytes"] = report.stderr_bytes;
  json["stderr_tail"] = report.worker_stderr_tail;
  json["worker_pid"] = report.worker_pid == 0 ? Json(nullptr) : Json(report.worker_pid);
  json["worker_exit"] = report.worker_exit.empty() ? Json(nullptr) : Json(report.worker_exit);
  json["warm_worker"] = report.warm_worker;
  return json;
}

constexpr int kIndent = 2;
constexpr int kOneLine = -1;

}  // namespace

std::string RunReportJson(const RunRecord& record) {
  return Dump(ReportJson(record), kIndent);
}

std::string RunReportLine(const RunRecord& record) {
  return Dump(ReportJson(record), kOneLine);
}

std::string RepeatSummaryLine(const RepeatResult& result, const RepeatPlan& plan) {
  const auto percentile = [&](double percent) {
    return Milliseconds(Percentile(result.times, percent));
  };
  Json json;
  json["schema"] = kRepeatSummarySchema;
  json["runs"] = result.times.size();
  json["not_started"] = result.unstarted;
  json["jobs"] = plan.jobs;
  json["codes"] = result.codes;
  json["exit_status"] = result.exit_status;
  json["warm"] = result.warm;
  json["elapsed_ms"] = Milliseconds(result.elapsed);
  json["run_ms"] = Json{{"p50", percentile(50)},
                        {"p90", percentile(90)},
                        {"p99", percentile(99)},
                        {"max", percentile(100)}};
  return Dump(json, kOneLine);
}

std::string StageEventJson(std::string_view task, const RunEvent& event) {
  constexpr int kOneLine = -1;
  return Dump(Json{{"event", "stage"},
                   {"task", task},
                   {"stage", StageName(event.stage)},
                   {"worker_pid", event.worker_pid}},
              kOneLine);
}

std::string EndEventJson(std::string_view code, int exit_status) {
  constexpr int kOneLine = -1;
  return Dump(Json{{"event", "end"}, {"code", code}, {"exit_status", exit_status}}, kOneLine);
}

}  // namespace bulkhead::cli
