// The --json of inspect, doctor, audit and version. Pure; valid UTF-8 whatever the strings hold.
#pragma once

#include <bulkhead/module.h>

#include <optional>
#include <string>
#include <vector>

#include "cli/audit.h"
#include "cli/machine_checks.h"

namespace bulkhead::cli {

struct VersionInfo {
  std::string version;
  std::string build_id;
  unsigned protocol_version = 0;
  std::string engine;
  std::string engine_version;
};

// Schemas bulkhead.inspection/1, bulkhead.doctor/1, bulkhead.audit/1, bulkhead.version/1;
// pretty-printed, with a final newline.
std::string InspectionJson(const std::string& path, const Inspection& inspection);
std::string DoctorJson(const MachineReport& report);
std::string AuditJson(const Audit& audit);
std::string VersionJson(const VersionInfo& info);

}  // namespace bulkhead::cli
