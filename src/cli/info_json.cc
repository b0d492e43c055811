#include "cli/info_json.h"

#include <nlohmann/json.hpp>

namespace bulkhead::cli {
namespace {

using Json = nlohmann::ordered_json;

std::string Dump(const Json& json) {
  constexpr int kIndent = 2;
  return json.dump(kIndent, ' ', false, Json::error_handler_t::replace) + "\n";
}

Json MemoriesJson(const ModuleInfo& info) {
  Json json = Json::array();
  for (const ModuleInfo::Memory& memory : info.memories) {
    json.push_back(Json{{"imported", memory.imported},
                        {"shared", memory.shared},
                        {"memory64", memory.memory64},
                        {"pages_min", memory.pages_min},
                        {"pages_max", memory.pages_max ? Json(*memory.pages_max) : Json(nullptr)}});
  }
  return json;
}

Json ImportsJson(const ModuleInfo& info) {
  Json json = Json::array();
  for (const ModuleInfo::Import& item : info.imports) {
    json.push_back(Json{
        {"module", item.module}, {"name", item.name}, {"kind", item.kind}, {"type", item.type}});
  }
  return json;
}

Json ExportsJson(const ModuleInfo& info) {
  Json json = Json::array();
  for (const ModuleInfo::Export& item : info.exports) {
    json.push_back(Json{{"name", item.name}, {"kind", item.kind}, {"type", item.type}});
  }
  return json;
}

}  // namespace

std::string InspectionJson(const std::string& path, const Inspection& inspection) {
  const ModuleInfo& info = inspection.info;
  Json refusals = Json::array();
  for (const Refusal& refusal : inspection.refusals) {
    refusals.push_back(Json{{"code", refusal.code}, {"detail", refusal.detail}});
  }
  return Dump(Json{
      {"schema", "bulkhead.inspection/1"},
      {"path", path},
      {"admissible", inspection.refusals.empty()},
      {"refusals", std::move(refusals)},
      {"profile", info.profile == Profile::kAuto ? Json(nullptr) : Json(ProfileName(info.profile))},
      {"bytes", info.bytes},
      {"functions", info.functions},
      {"has_start_section", info.has_start_section},
      {"memories", MemoriesJson(info)},
      {"import_count", info.import_count},
      {"imports", ImportsJson(info)},
      {"export_count", info.export_count},
      {"exports", ExportsJson(info)},
      {"custom_sections", info.custom_sections}});
}

std::string DoctorJson(const MachineReport& report) {
  Json checks = Json::array();
  for (const MachineCheck& check : report.checks) {
    checks.push_back(Json{{"name", check.name},
                          {"state", CheckStateName(check.state)},
                          {"finding", check.finding},
                          {"cost", check.cost},
                          {"fix", check.fix}});
  }
  return Dump(Json{{"schema", "bulkhead.doctor/1"},
                   {"contained", report.contained},
                   {"containment", report.containment},
                   {"checks", std::move(checks)}});
}

std::string CacheStatJson(const std::string& directory, const CodeCacheStat& stat) {
  return Dump(Json{{"schema", "bulkhead.cache-stat/1"},
                   {"directory", directory},
                   {"entries", stat.entries},
                   {"bytes", stat.bytes},
                   {"bytes_max", stat.bytes_max}});
}

std::string CacheSweepJson(const std::string& directory, const CodeCacheSweep& sweep) {
  return Dump(Json{{"schema", "bulkhead.cache-sweep/1"},
                   {"directory", directory},
                   {"entries", sweep.entries},
                   {"bytes", sweep.bytes},
                   {"removed", sweep.removed},
                   {"removed_bytes", sweep.removed_bytes},
                   {"problems", sweep.problems}});
}

std::string AuditJson(const Audit& audit) {
  Json findings = Json::array();
  for (const AuditFinding& finding : audit.findings) {
    findings.push_back(Json{{"mechanism", finding.mechanism},
                            {"state", AuditStateName(finding.state)},
                            {"promised", finding.promised},
                            {"finding", finding.finding},
                            {"meaning", finding.meaning}});
  }
  return Dump(Json{{"schema", "bulkhead.audit/1"},
                   {"pid", audit.pid},
                   {"program", audit.program},
                   {"holds", audit.holds()},
                   {"findings", std::move(findings)}});
}

std::string VersionJson(const VersionInfo& info) {
  return Dump(Json{{"schema", "bulkhead.version/1"},
                   {"version", info.version},
                   {"build_id", info.build_id},
                   {"protocol_version", info.protocol_version},
                   {"engine", Json{{"name", info.engine.name},
                                   {"version", info.engine.version},
                                   {"supported_until", info.engine.supported_until.empty()
                                                           ? Json(nullptr)
                                                           : Json(info.engine.supported_until)},
                                   {"linked_in", info.engine.linked_in}}}});
}

}  // namespace bulkhead::cli
