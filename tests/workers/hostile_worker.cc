// A worker that was taken over, in the containment of the real one: locks itself down as every
// worker does, then makes one attempt and says how it ended.
//
// Guest arguments: [1] is the attempt's name, [2] "lock-down" or "guest-phase". Environment: what
// to aim at (hostile::Target). Writes "result N" to the guest's stdout. Outcome: worker-completed,
// or worker-unexpected-exit where the attempt is deadly.
#include <unistd.h>

#include <charconv>
#include <string>
#include <string_view>

#include "hostile/attempts.h"
#include "worker/worker_main.h"

namespace {

using bulkhead::Result;
using bulkhead::hostile::Target;
namespace hostile = bulkhead::hostile;
namespace worker = bulkhead::worker;
namespace wire = bulkhead::wire;

constexpr std::uint64_t kGuestDataBytes = 64U << 20;

class HostileHandler final : public worker::RunHandler {
 public:
  Result<std::size_t> GuestThreadStackBytes(const wire::Execute& execute) override {
    return execute.stack_bytes;
  }

  wire::Terminal Run(worker::RunRequest request, worker::RunControl& control) override {
    if (request.execute.arguments.size() != 3) {
      return worker::MakeTerminal(wire::Terminal::Kind::kWorkerFailure, "no attempt is named");
    }
    const std::string& name = request.execute.arguments[1];
    if (request.execute.arguments[2] == "guest-phase" &&
        !request.guest_phase.Enter(kGuestDataBytes)) {
      return worker::MakeTerminal(wire::Terminal::Kind::kWorkerFailure, "no guest phase");
    }
    if (!control.Begin({})) {
      return worker::MakeTerminal(wire::Terminal::Kind::kCancelled);
    }
    const std::string line = "result " + std::to_string(Try(name, TargetOf(request))) + "\n";
    if (write(request.stdout_fd.get(), line.data(), line.size()) < 0) {
      return worker::MakeTerminal(wire::Terminal::Kind::kWorkerFailure, "cannot report");
    }
    wire::Terminal terminal = worker::MakeTerminal(wire::Terminal::Kind::kCompleted);
    terminal.completed_as = wire::Terminal::CompletedAs::kStarted;
    return terminal;
  }

  void Interrupt(worker::StopCause /*cause*/) noexcept override {}

 private:
  static long Try(const std::string& name, const Target& target) {
    if (const hostile::Attempt* attempt = hostile::FindAttempt(name.c_str())) {
      return attempt->act(target);
    }
    const hostile::PathAttempt* attempt = hostile::FindPathAttempt(name.c_str());
    return attempt == nullptr ? 0 : attempt->act(target);
  }

  static const char* Text(const worker::RunRequest& request, std::string_view key) {
    for (const std::string& entry : request.execute.environment) {
      if (entry.starts_with(key) && entry[key.size()] == '=') {
        return entry.c_str() + key.size() + 1;
      }
    }
    return "";
  }

  static long Number(const worker::RunRequest& request, std::string_view key) {
    const std::string_view text = Text(request, key);
    long number = 0;
    std::from_chars(text.data(), text.data() + text.size(), number);
    return number;
  }

  static Target TargetOf(const worker::RunRequest& request) {
    Target target;
    target.parent = Number(request, "PARENT");
    target.sibling = Number(request, "SIBLING");
    target.tcp_port = static_cast<unsigned short>(Number(request, "TCP_PORT"));
    target.secret = Text(request, "SECRET");
    target.new_path = Text(request, "NEW_PATH");
    target.socket_path = Text(request, "SOCKET_PATH");
    target.held_stream = request.stdout_fd.get();
    for (const worker::DirectoryGrant& grant : request.directories) {
      (grant.writable ? target.writable : target.read_only) = grant.directory.get();
    }
    return target;
  }
};

}  // namespace

int main() {
  HostileHandler handler;
  worker::WorkerMain(handler);
}
