// Embedding Bulkhead: run a module under limits, stop it from a signal handler or from another
// thread.
//
//   embed_run MODULE.wasm [SECONDS]   Ctrl-C cancels; after SECONDS another thread does as well
#include <bulkhead/run.h>

#include <poll.h>

#include <charconv>
#include <csignal>
#include <iostream>
#include <optional>
#include <string_view>
#include <thread>

namespace {

// A signal handler may touch only this: Cancel() is one write(2).
std::optional<bulkhead::CancelSource> g_cancel;

void OnInterrupt(int /*signal*/) {
  g_cancel->Cancel();
}

bulkhead::Result<bulkhead::RunReport> RunUnderLimits(const char* path, int seconds) {
  const std::unique_ptr<bulkhead::Runtime> runtime = BH_TRY(bulkhead::Runtime::Create({}));
  bulkhead::ModuleSource source =
      BH_TRY(bulkhead::ModuleSource::FromFile(path, bulkhead::ModulePolicy::kModuleBytesCeiling));
  const bulkhead::AdmittedModule module = BH_TRY(std::move(source).Admit({}));

  bulkhead::RunRequest request;
  request.worker.executable = BH_TRY(bulkhead::FindWorker(bulkhead::kWasmWorkerName));
  request.limits.deadline = std::chrono::seconds(60);
  request.limits.memory_bytes = 256U << 20;
  request.arguments = {path};
  request.stdout_to = bulkhead::GuestStream::Descriptor(1);
  request.stderr_to = bulkhead::GuestStream::Descriptor(2);
  request.cancel = g_cancel->token();

  bulkhead::RunHandle run = BH_TRY(bulkhead::StartRun(*runtime, module, std::move(request)));
  // Any thread may cancel; this one does when the run takes too long for it.
  std::thread impatient([&run, seconds] {
    pollfd ended{run.poll_fd(), POLLIN, 0};
    if (poll(&ended, 1, seconds * 1000) == 0) {
      run.Cancel();
    }
  });
  impatient.join();
  return run.Wait();
}

bool ParseSeconds(std::string_view text, int* seconds) {
  const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), *seconds);
  return error == std::errc() && stop == text.data() + text.size() && *seconds > 0 &&
         *seconds <= 86'400;
}

}  // namespace

int main(int argc, char** argv) {
  int seconds = 60;
  if (argc < 2 || argc > 3 || (argc == 3 && !ParseSeconds(argv[2], &seconds))) {
    std::cerr << "usage: embed_run MODULE.wasm [SECONDS]\n";
    return 2;
  }
  auto cancel = bulkhead::CancelSource::Create();
  if (!cancel) {
    std::cerr << "embed_run: " << cancel.error().message << "\n";
    return 1;
  }
  g_cancel = *cancel;
  struct sigaction action{};
  action.sa_handler = OnInterrupt;
  sigaction(SIGINT, &action, nullptr);
  const auto report = RunUnderLimits(argv[1], seconds);
  if (!report) {
    std::cerr << "embed_run: " << report.error().message << "\n";
    return 1;
  }
  std::cerr << "embed_run: " << report->outcome.CodeText() << " " << report->diagnostic << "\n";
  return report->outcome.completed() ? 0 : 1;
}
