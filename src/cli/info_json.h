// The --json of inspect, doctor, audit and version. Pure; valid UTF-8 whatever the strings hold.
#pragma once

#include <bulkhead/code_cache.h>
#include <bulkhead/module.h>

#include <optional>
#include <string>
#include <vector>

#include "cli/audit.h"
#include "cli/engine_support.h"
#include "cli/machine_checks.h"

namespace bulkhead::cli {

struct VersionInfo {
  std::string version;
  std::string build_id;
  unsigned protocol_version = 0;
  EngineInfo engine;
};

// Schemas bulkhead.inspection/1, bulkhead.doctor/1, bulkhead.audit/1, bulkhead.version/1;
// pretty-printed, with a final newline.
std::string InspectionJson(const std::string& path, const Inspection& inspection);
std::string DoctorJson(const MachineReport& report);
// Schemas "bulkhead.cache-stat/1" and "bulkhead.cache-sweep/1".
std::string CacheStatJson(const std::string& directory, const CodeCacheStat& stat);
std::string CacheSweepJson(const std::string& directory, const CodeCacheSweep& sweep);
std::string AuditJson(const Audit& audit);
std::string VersionJson(const VersionInfo& info);

}  // namespace bulkhead::cli
