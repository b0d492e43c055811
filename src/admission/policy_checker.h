// What the checks of all profiles share: the module, the policy, and the refusals found so far.
#pragma once

#include <bulkhead/module.h>

#include <string>
#include <string_view>
#include <vector>

#include "admission/wasm_scan.h"

namespace bulkhead::admission {

class PolicyChecker {
 public:
  PolicyChecker(const Scan& scan, const ModulePolicy& policy, std::vector<Refusal>& refusals)
      : scan_(scan), policy_(policy), refusals_(refusals) {}

 protected:
  // A function the module has to export: "() -> ()" as ExternTypeText shows it.
  struct EntryPoint {
    std::string_view name;
    std::string_view type;
    std::string_view missing;  // the refusal code
  };

  void Refuse(std::string_view code, std::string detail) {
    refusals_.push_back({std::string(code), std::move(detail)});
  }

  const ScanExport* FindExport(std::string_view name) const;
  // `missing` if there is no such function, entrypoint-mismatch if it has another type.
  void RequireEntryPoint(const EntryPoint& entry);

  // 'module'.'name', cut and quoted.
  static std::string Shown(const ScanImport& import);

  const Scan& scan() const { return scan_; }

  const ModulePolicy& policy() const { return policy_; }

 private:
  const Scan& scan_;
  const ModulePolicy& policy_;
  std::vector<Refusal>& refusals_;
};

// One per profile: appends what it has against the module. In this order:
//  wasi: imports in their order (imported-memory, forbidden-import, import-type-mismatch), then the
//    entry point (missing-start, entrypoint-mismatch)
//  wasi-threads: the memory (missing-shared-memory, multiple-memory-imports, unshared-memory), the
//    other imports, then both entry points (missing-start, missing-thread-start,
//    entrypoint-mismatch)
//  sketch: memory (multiple-memory-imports, defined-memory-forbidden, missing-shared-memory,
//    forbidden-import, unshared-memory, shared-memory-exceeds-policy, threaded-memory-mismatch),
//    manifest (missing-metadata, duplicate-metadata, metadata-mismatch), imports
//    (forbidden-import, import-type-mismatch, missing-required-import), exports
//    (memory-export-mismatch, export-not-allowed, import-type-mismatch), start section
//    (start-mismatch), other custom sections (forbidden-custom-section, metadata-too-large),
//    features (missing-target-features, metadata-too-large, target-features-mismatch)
void CheckWasi(const Scan& scan, const ModulePolicy& policy, std::vector<Refusal>& refusals);
void CheckWasiThreads(const Scan& scan, const ModulePolicy& policy, std::vector<Refusal>& refusals);
void CheckSketch(const Scan& scan, const ModulePolicy& policy, std::vector<Refusal>& refusals);

// Refused imports that are listed one by one; the rest is one sentence with their number.
inline constexpr std::size_t kRefusalsListedMax = 32;

inline constexpr std::string_view kThreadsModule = "wasi";
inline constexpr std::string_view kThreadSpawn = "thread-spawn";
inline constexpr std::string_view kThreadSpawnType = "(i32) -> i32";
inline constexpr std::string_view kStart = "_start";
inline constexpr std::string_view kStartType = "() -> ()";
inline constexpr std::string_view kThreadStart = "wasi_thread_start";
inline constexpr std::string_view kThreadStartType = "(i32, i32) -> ()";

}  // namespace bulkhead::admission
