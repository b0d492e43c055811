// A run on a thread of its own.
#include <bulkhead/run.h>

#include <system_error>
#include <thread>

#include "base/check.h"
#include "base/event_fd.h"
#include "oneshot/run.h"

namespace bulkhead {

// Held by pointer: the thread refers to it. The module handle keeps the module alive as long as the
// run.
struct RunHandle::Impl {
  Runtime& runtime;
  AdmittedModule module;
  RunRequest request;
  CancelSource abandon;
  EventFd done;
  RunReport report;
  std::thread thread;

  void Run() {
    report = oneshot::Execute(runtime.impl(), oneshot::WorkOf(module), request, abandon.token());
    done.Signal();
  }
};

RunHandle::RunHandle(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}

RunHandle::RunHandle(RunHandle&& other) noexcept = default;

RunHandle& RunHandle::operator=(RunHandle&& other) noexcept {
  std::swap(impl_, other.impl_);
  return *this;
}

RunHandle::~RunHandle() {
  if (impl_ != nullptr && impl_->thread.joinable()) {
    Cancel();
    impl_->thread.join();
  }
}

int RunHandle::poll_fd() const {
  return impl_->done.fd().get();
}

void RunHandle::Cancel() {
  impl_->abandon.Cancel();
}

RunReport RunHandle::Wait() {
  BH_CHECK(impl_ != nullptr && impl_->thread.joinable());
  impl_->thread.join();
  return std::move(impl_->report);
}

Result<RunHandle> StartRun(Runtime& runtime, const AdmittedModule& module, RunRequest request) {
  CancelSource abandon = BH_TRY(CancelSource::Create());
  EventFd done = BH_TRY(EventFd::Create());
  auto impl = std::unique_ptr<RunHandle::Impl>(new RunHandle::Impl{
      runtime, module, std::move(request), std::move(abandon), std::move(done), {}, {}});
  try {
    impl->thread = std::thread([run = impl.get()] { run->Run(); });
  } catch (const std::system_error& error) {
    return Fail(ErrorCode::kResourceExhausted,
                std::string("starting a run's thread: ") + error.what(), error.code().value());
  }
  return RunHandle(std::move(impl));
}

}  // namespace bulkhead
