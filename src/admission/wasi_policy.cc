// Commands for WASI preview 1, with and without threads.
#include <fmt/core.h>

#include <algorithm>

#include "admission/policy_checker.h"
#include "admission/preview1_imports.h"

namespace bulkhead::admission {
namespace {

constexpr std::string_view kInitialize = "_initialize";

class WasiChecker : public PolicyChecker {
 public:
  WasiChecker(Profile profile, const Scan& scan, const ModulePolicy& policy,
              std::vector<Refusal>& refusals)
      : PolicyChecker(scan, policy, refusals), profile_(profile) {}

  void Run() {
    if (threads()) {
      CheckSharedMemory();
    }
    CheckImports();
    CheckStart();
    if (Spawns() || FindExport(kThreadStart) != nullptr) {
      RequireEntryPoint({kThreadStart, kThreadStartType, "missing-thread-start"});
    }
  }

 private:
  bool threads() const { return profile_ == Profile::kWasiThreads; }

  bool Spawns() const {
    return std::any_of(scan().imports.begin(), scan().imports.end(), [](const ScanImport& import) {
      return import.module == kThreadsModule && import.name == kThreadSpawn;
    });
  }

  void CheckSharedMemory() {
    if (scan().memories_imported == 0) {
      Refuse("missing-shared-memory",
             "the module imports no memory; its threads have to share one that it imports");
      return;
    }
    if (scan().memories_imported > 1) {
      Refuse("multiple-memory-imports",
             fmt::format("the module imports {} memories, it may import one",
                         scan().memories_imported));
    }
    for (std::uint32_t i = 0; i < scan().memories_imported; ++i) {
      if (!scan().memories[i].shared) {
        Refuse("unshared-memory", fmt::format("the imported memory {} is not shared", i));
      }
    }
  }

  void CheckImports() {
    std::size_t listed = 0;
    std::size_t unlisted = 0;
    for (const ScanImport& import : scan().imports) {
      if (ImportIsFine(import)) {
        continue;
      }
      if (listed++ < kRefusalsListedMax) {
        RefuseImport(import);
      } else {
        ++unlisted;
      }
    }
    if (unlisted > 0) {
      Refuse("forbidden-import", fmt::format("{} more imports are refused", unlisted));
    }
  }

  // The type it must have; empty if there is no such function.
  std::string_view OfferedType(const ScanImport& import) const {
    if (import.kind != ExternKind::kFunction) {
      return {};
    }
    if (threads() && import.module == kThreadsModule && import.name == kThreadSpawn) {
      return kThreadSpawnType;
    }
    const Preview1Function* const known =
        import.module == kPreview1Module ? FindPreview1Function(import.name) : nullptr;
    return known == nullptr ? std::string_view() : known->type;
  }

  std::string TypeOf(const ScanImport& import) const {
    return ExternTypeText(scan(), import.kind, import.index);
  }

  bool ImportIsFine(const ScanImport& import) const {
    if (import.kind == ExternKind::kMemory && threads()) {
      return true;  // looked at before
    }
    const std::string_view type = OfferedType(import);
    return !type.empty() && TypeOf(import) == type;
  }

  void RefuseImport(const ScanImport& import) {
    if (import.kind == ExternKind::kMemory) {
      Refuse("imported-memory",
             fmt::format("the module imports memory {}; profile 'wasi' modules bring their own",
                         Shown(import)));
      return;
    }
    const std::string_view type = OfferedType(import);
    if (type.empty()) {
      Refuse("forbidden-import",
             fmt::format("the module imports {} {}; profile '{}' offers the functions of {}{} only",
                         ExternKindName(import.kind), Shown(import), ProfileName(profile_),
                         kPreview1Module, threads() ? " and wasi.thread-spawn" : ""));
      return;
    }
    Refuse("import-type-mismatch", fmt::format("the module imports {} as {}, it is {}",
                                               Shown(import), TypeOf(import), type));
  }

  void CheckStart() {
    const ScanExport* const reactor = FindExport(kInitialize);
    if (FindExport(kStart) == nullptr && reactor != nullptr &&
        reactor->kind == ExternKind::kFunction) {
      Refuse("missing-start",
             "the module is a reactor (it exports '_initialize' and no '_start'); build it as a "
             "command");
      return;
    }
    RequireEntryPoint({kStart, kStartType, "missing-start"});
  }

  const Profile profile_;
};

}  // namespace

void CheckWasi(const Scan& scan, const ModulePolicy& policy, std::vector<Refusal>& refusals) {
  WasiChecker(Profile::kWasi, scan, policy, refusals).Run();
}

void CheckWasiThreads(const Scan& scan, const ModulePolicy& policy,
                      std::vector<Refusal>& refusals) {
  WasiChecker(Profile::kWasiThreads, scan, policy, refusals).Run();
}

}  // namespace bulkhead::admission
