// The story of one run, from request to report; each step lives in a file named after it.
#include <bulkhead/run.h>

#include <fcntl.h>
#include <fmt/core.h>

#include "oneshot/code.h"
#include "oneshot/publication.h"
#include "oneshot/report.h"
#include "oneshot/run.h"

namespace bulkhead::oneshot {
namespace {

using supervise::ExchangeResult;

// Everything of one run that outlives a single step. Early returns are undone by the members'
// destructors.
class Run {
 public:
  Run(Runtime::Impl& runtime, Work work, const RunRequest& request, const CancelToken& abandoned)
      : runtime_(runtime),
        work_(std::move(work)),
        request_(request),
        abandoned_(abandoned),
        started_(runtime.clock.Now()),
        deadline_(Deadline::After(started_, request.limits.deadline)),
        run_id_(supervise::NextRunId()),
        ledger_(runtime.ledger) {}

  RunReport Execute();

 private:
  // Each step says whether the run goes on; if not, report_ holds the outcome.
  bool AdmitRun();
  bool Stage();
  bool PrepareWorker();
  bool ObtainCode();
  bool CompileCode();
  bool RenewCode();
  bool Launch(Preparation& preparation);
  void Converse(Preparation preparation);
  Result<supervise::StartedWorker> ObtainWorker(const supervise::WorkerStart& start);
  void Publish();

  void StoreCode(const codecache::Code& code);
  bool EndUnprepared(const Error& error);
  bool End(OutcomeCode code, std::string diagnostic = {});
  bool CancelRequested() const;
  bool StoppedNow();
  void Enter(bulkhead::Stage stage);

  Runtime::Impl& runtime_;
  Work work_;
  const RunRequest& request_;
  const CancelToken& abandoned_;
  MonotonicTime started_;
  Deadline deadline_;
  std::uint64_t run_id_;
  supervise::RunLedger ledger_;
  std::shared_ptr<supervise::RunPermit> permit_;
  std::shared_ptr<staging::StagingArea> staging_;
  std::shared_ptr<supervise::GaugeHold> live_worker_;
  Preparation preparation_;  // of the worker that runs the guest
  const codecache::Store* store_ = nullptr;
  codecache::Key key_;
  bool code_refused_ = false;  // by the engine of the last worker
  bool compile_time_reached_ = false;
  supervise::WatchGuard guard_;
  bool spare_broke_ = false;  // it ended before it took the module: the run starts once more
  RunReport report_;
  StageClock stages_;
};

// Decision tables A, D, B and C in this order (docs/outcomes.md).
RunReport Run::Execute() {
  Enter(bulkhead::Stage::kLaunch);
  if (AdmitRun() && Stage() && PrepareWorker() && ObtainCode() && Launch(preparation_)) {
    Converse(std::move(preparation_));
    if (spare_broke_ && PrepareWorker() && ObtainCode() && Launch(preparation_)) {
      Converse(std::move(preparation_));
    }
    if (code_refused_ && PrepareWorker() && RenewCode() && Launch(preparation_)) {
      Converse(std::move(preparation_));
    }
  }
  if (ledger_.own().spawned != 0) {
    Publish();
  }
  report_.ledger = ledger_.own();
  report_.elapsed =
      std::chrono::duration_cast<std::chrono::microseconds>(runtime_.clock.Now() - started_);
  stages_.Close(runtime_.clock.Now(), report_.durations);
  FillLimits(request_, compile_time_reached_, report_);
  Enter(bulkhead::Stage::kDone);
  return std::move(report_);
}

bool Run::AdmitRun() {
  if (CancelRequested()) {
    report_.stop = StopCause::kCancelled;
    return End(OutcomeCode::kCancelled);
  }
  if (Status valid = ValidateRequest(request_, work_.profile); !valid) {
    return End(OutcomeCode::kWorkerInvalidConfiguration, valid.error().message);
  }
  if (work_.module_bytes > ModulePolicy::kModuleBytesCeiling) {
    return End(OutcomeCode::kWorkerInvalidConfiguration,
               fmt::format("a module of {} bytes: at most {} are accepted", work_.module_bytes,
                           ModulePolicy::kModuleBytesCeiling));
  }
  if (run_id_ == 0) {
    return End(OutcomeCode::kWorkerProtocol, "request ids are used up");
  }
  permit_ = supervise::RunPermit::TryAcquire(runtime_);
  if (permit_ == nullptr) {
    return End(OutcomeCode::kRootExecutionLimitExceeded,
               fmt::format("{} runs are active already", runtime_.options.active_runs_max));
  }
  return !StoppedNow();
}

bool Run::Stage() {
  if (!request_.output) {
    return true;
  }
  if (Status valid = request_.output->Validate(); !valid) {
    return End(OutcomeCode::kWorkerOutputGrant, valid.error().message);
  }
  report_.output = OutputReport{request_.output->path, 0, {}, false};
  auto owner = staging::OwnerIdentity::ReadSelf();
  if (!owner) {
    return End(OutcomeCode::kWorkerOutputGrant, owner.error().message);
  }
  auto area = staging::StagingArea::Create(*request_.output, *owner);
  if (!area) {
    return End(OutcomeCode::kWorkerOutputGrant, area.error().message);
  }
  staging_ = std::move(*area);
  return !StoppedNow();
}

bool Run::PrepareWorker() {
  auto preparation = Prepare(request_, work_, staging_.get());
  if (!preparation) {
    return EndUnprepared(preparation.error());
  }
  preparation_ = std::move(*preparation);
  return true;
}

// Table D: with a cache the code comes from there, else from a worker that compiles and runs
// nothing.
bool Run::ObtainCode() {
  store_ = StoreFor(runtime_, request_, work_);
  if (store_ == nullptr) {
    return true;
  }
  key_ = CodeKey(preparation_, *work_.admitted);
  report_.code.key = key_.Text();
  codecache::Lookup found = store_->Find(key_);
  report_.code.problem = std::move(found.problem);
  if (found.corrupt) {
    runtime_.code_ledger.Add(&CodeCounts::corrupt);
  }
  if (!found.code) {
    return CompileCode();
  }
  runtime_.code_ledger.Add(&CodeCounts::hits);
  report_.code.source = CodeSource::kCache;
  if (Status given = GiveCode(*found.code, preparation_); !given) {
    return EndUnprepared(given.error());
  }
  return !StoppedNow();
}

bool Run::CompileCode() {
  runtime_.code_ledger.Add(&CodeCounts::misses);
  report_.code.source = CodeSource::kCompiled;
  auto work = CompileWork(work_);
  if (!work) {
    return EndUnprepared(work.error());
  }
  const RunRequest request = WithoutAuthority(request_);
  auto preparation = Prepare(request, *work, nullptr);
  if (!preparation) {
    return EndUnprepared(preparation.error());
  }
  if (!Launch(*preparation)) {
    return false;
  }
  Converse(*std::move(preparation));
  if (!report_.outcome.completed()) {
    return false;
  }
  stages_.Enter(bulkhead::Stage::kCompile, runtime_.clock.Now());  // storing is a part of it
  const auto code = TakeCode(*std::move(work), CodeBytesMax(request));
  if (!code) {
    return End(OutcomeCode::kWorkerProtocol, code.error().message);
  }
  StoreCode(*code);
  if (Status given = GiveCode(*code, preparation_); !given) {
    return EndUnprepared(given.error());
  }
  report_.output_created = false;  // that was the code
  Enter(bulkhead::Stage::kLaunch);
  return !StoppedNow();
}

// Once: code that was compiled in this run and is refused is a fault of the worker.
bool Run::RenewCode() {
  store_->Remove(key_);
  if (report_.code.source != CodeSource::kCache) {
    return false;
  }
  runtime_.code_ledger.Add(&CodeCounts::stale);
  report_.code.problem =
      fmt::format("the engine did not take the code from the cache: {}", report_.diagnostic);
  Enter(bulkhead::Stage::kLaunch);
  return !StoppedNow() && CompileCode();
}

// The run has its code whether this works or not.
void Run::StoreCode(const codecache::Code& code) {
  if (Status stored = store_->Put(key_, code); !stored) {
    report_.code.problem += report_.code.problem.empty() ? "" : "; ";
    report_.code.problem += stored.error().message;
    return;
  }
  report_.code.stored = true;
  runtime_.code_ledger.Add(&CodeCounts::stored);
}

// On a spare worker if there is one, unless such a one failed this run before.
bool Run::Launch(Preparation& preparation) {
  LimitCpu(request_, report_.cpu, preparation.start);
  guard_ = supervise::WatchGuard();  // of the worker before
  auto worker = ObtainWorker(preparation.start);
  if (!worker) {
    return End(OutcomeCode::kWorkerLaunch, worker.error().message);
  }
  ledger_.Add(&WorkerLedger::spawned);
  live_worker_ =
      std::make_shared<supervise::GaugeHold>(runtime_.ledger, &WorkerLedger::live_workers);
  report_.worker_pid = worker->process->identity().pid;
  report_.containment = worker->walls.mechanisms;
  UniqueFd pidfd(fcntl(worker->process->pidfd().get(), F_DUPFD_CLOEXEC, 0));
  if (pidfd.valid()) {
    auto guard = runtime_.watchdog->Arm(
        {std::move(pidfd), deadline_, request_.worker.grace, request_.cancel});
    if (guard) {  // a backstop: without it the exchange still enforces every bound
      guard_ = std::move(*guard);
    }
  }
  preparation.exchange.worker = *std::move(worker);
  return true;
}

Result<supervise::StartedWorker> Run::ObtainWorker(const supervise::WorkerStart& start) {
  report_.warm_worker = false;
  if (!spare_broke_ && MayBeWarm(request_)) {
    if (auto spare = runtime_.warm->Take(start)) {
      report_.warm_worker = true;
      return *std::move(spare);
    }
  }
  return supervise::StartWorker(*runtime_.keeper, start, run_id_);
}

void Run::Converse(Preparation preparation) {
  supervise::ExchangeInput& input = preparation.exchange;
  const std::chrono::seconds cpu_limit(input.worker.hello.cpu_seconds);
  input.deadline = deadline_;
  input.abandoned = abandoned_;
  input.guard = &guard_;
  supervise::Exchange exchange({runtime_.clock, ledger_, runtime_.options.observer, run_id_},
                               std::move(input));
  ExchangeResult result = exchange.RunToEnd();
  stages_.Adopt(result.entered);
  if (request_.limits.cpu_time) {
    result.facts.cpu_limit = cpu_limit;
    result.facts.cpu_used = result.use.cpu;
  }
  report_.outcome = supervise::Classify(result.facts);
  FillFromExchange(result, exchange, report_);
  runtime_.containment.Note(report_.containment);
  compile_time_reached_ = result.facts.verdict == supervise::Verdict::kCompileTime;
  code_refused_ = report_.outcome.code == OutcomeCode::kWorkerReportedFailure &&
                  result.facts.terminal->kind == wire::Terminal::Kind::kCodeRefused;
  if (result.uncontained != nullptr) {
    // Everything that must outlive the worker travels with it, in one piece.
    runtime_.keeper->HandOff(
        {std::move(result.uncontained), {std::move(staging_), std::move(live_worker_), permit_}});
  }
  live_worker_.reset();
  guard_ = {};
  spare_broke_ = report_.warm_worker && report_.stage == bulkhead::Stage::kHandOver &&
                 report_.outcome.code == OutcomeCode::kWorkerUnexpectedExit &&
                 report_.stop == StopCause::kNone;
}

// Decision table C: only a completed run whose worker is gone publishes.
void Run::Publish() {
  if (staging_ == nullptr) {
    return;
  }
  Enter(bulkhead::Stage::kPublish);
  StopCause stop = StopCause::kNone;
  Publication publication;
  if (!report_.outcome.completed()) {
    publication = AfterDiscard(report_.outcome, staging_->Discard().has_value());
  } else if (!report_.output_created) {
    (void)staging_->Discard();
    publication.masked_code = report_.outcome.CodeText();
    publication.outcome.code = OutcomeCode::kWorkerOutputCommit;
    report_.diagnostic = "the guest completed without creating its output file";
  } else {
    const auto commit = staging_->Commit([&] {
      if (stop == StopCause::kNone && CancelRequested()) {
        stop = StopCause::kCancelled;
      } else if (stop == StopCause::kNone && deadline_.PassedAt(runtime_.clock.Now())) {
        stop = StopCause::kDeadlineExceeded;
      }
      return stop != StopCause::kNone;
    });
    publication = AfterCommit(report_.outcome, commit, stop);
    FillFromCommit(commit, report_);
  }
  if (stop != StopCause::kNone) {
    report_.stop = stop;
  }
  report_.outcome = std::move(publication.outcome);
  if (!publication.masked_code.empty()) {
    report_.masked_code = std::move(publication.masked_code);
  }
  staging_.reset();
}

bool Run::EndUnprepared(const Error& error) {
  return End(error.code == ErrorCode::kInvalidArgument ? OutcomeCode::kWorkerInvalidConfiguration
                                                       : OutcomeCode::kWorkerLaunch,
             error.message);
}

bool Run::End(OutcomeCode code, std::string diagnostic) {
  report_.outcome = Outcome{};
  report_.outcome.code = code;
  report_.diagnostic = std::move(diagnostic);
  return false;
}

bool Run::CancelRequested() const {
  return request_.cancel.cancelled() || abandoned_.cancelled() || request_.force.cancelled();
}

// Row A4: between the steps before a process exists.
bool Run::StoppedNow() {
  const bool cancelled = CancelRequested();
  if (!cancelled && !deadline_.PassedAt(runtime_.clock.Now())) {
    return false;
  }
  report_.stop = cancelled ? StopCause::kCancelled : StopCause::kDeadlineExceeded;
  End(cancelled ? OutcomeCode::kCancelled : OutcomeCode::kDeadlineExceeded);
  return true;
}

void Run::Enter(bulkhead::Stage stage) {
  const MonotonicTime now = runtime_.clock.Now();
  stages_.Enter(stage, now);
  if (stage != bulkhead::Stage::kDone) {
    report_.stage = stage;
  }
  if (runtime_.options.observer != nullptr) {
    runtime_.options.observer->OnStage({run_id_, stage, report_.worker_pid});
  }
}

}  // namespace

Work WorkOf(const AdmittedModule& module) {
  Work work;
  work.module = BorrowedFd(module.descriptor());
  work.module_bytes = module.size_bytes();
  work.profile = module.info().profile;
  work.admitted = &module;
  return work;
}

RunReport Execute(Runtime::Impl& runtime, Work work, const RunRequest& request,
                  const CancelToken& abandoned) {
  return Run(runtime, std::move(work), request, abandoned).Execute();
}

}  // namespace bulkhead::oneshot

namespace bulkhead {

RunReport RunModule(Runtime& runtime, const AdmittedModule& module, const RunRequest& request) {
  return oneshot::Execute(runtime.impl(), oneshot::WorkOf(module), request);
}

}  // namespace bulkhead
