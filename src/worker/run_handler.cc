#include "worker/run_handler.h"

#include "base/strings.h"

namespace bulkhead::worker {

Result<std::unique_ptr<RunControl>> RunControl::Create() {
  EventFd stop_event = BH_TRY(EventFd::Create());
  EventFd progress = BH_TRY(EventFd::Create());
  return std::unique_ptr<RunControl>(new RunControl(std::move(stop_event), std::move(progress)));
}

bool RunControl::Begin(std::chrono::microseconds compile_time) {
  const std::lock_guard lock(mutex_);
  if (stop_) {
    return false;
  }
  began_ = compile_time;
  progress_.Signal();
  return true;
}

std::optional<StopCause> RunControl::stop() const {
  const std::lock_guard lock(mutex_);
  return stop_;
}

bool RunControl::Stop(StopCause cause) {
  const std::lock_guard lock(mutex_);
  if (stop_) {
    return false;
  }
  stop_ = cause;
  stop_event_.Signal();
  return true;
}

std::optional<std::chrono::microseconds> RunControl::began() const {
  const std::lock_guard lock(mutex_);
  return began_;
}

void RunControl::SetTrace(std::string text) {
  const std::lock_guard lock(mutex_);
  trace_ = std::move(text);
}

void RunControl::EndNow(wire::Terminal terminal) {
  End({std::move(terminal), {}, true});
}

void RunControl::Finish(wire::Terminal terminal) {
  End({std::move(terminal), {}, false});
}

std::optional<RunEnd> RunControl::TakeEnd() {
  const std::lock_guard lock(mutex_);
  return std::exchange(end_, std::nullopt);
}

void RunControl::End(RunEnd end) {
  const std::lock_guard lock(mutex_);
  if (!ended_) {
    ended_ = true;
    end_ = std::move(end);
    end_->trace = std::move(trace_);
    progress_.Signal();
  }
}

std::string WireText(std::string_view text, std::size_t bytes_max) {
  std::string line;
  for (const char c : Printable(CutUtf8(text, bytes_max))) {
    const bool blank = c == ' ' || c == '\n' || c == '\t';
    if (!blank) {
      line += c;
    } else if (!line.empty() && line.back() != ' ') {
      line += ' ';
    }
  }
  return std::string(CutUtf8(line, bytes_max));
}

wire::Terminal MakeTerminal(wire::Terminal::Kind kind, std::string_view diagnostic) {
  wire::Terminal terminal;
  terminal.kind = kind;
  terminal.diagnostic = WireText(diagnostic);
  return terminal;
}

}  // namespace bulkhead::worker
