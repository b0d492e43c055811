#include "wire/message_rules.h"

#include <algorithm>
#include <numeric>

namespace bulkhead::wire {
namespace {

bool HoldsNul(const std::vector<std::string>& texts) {
  return std::any_of(texts.begin(), texts.end(),
                     [](const std::string& text) { return text.find('\0') != std::string::npos; });
}

std::size_t TotalBytes(const std::vector<std::string>& texts) {
  return std::accumulate(
      texts.begin(), texts.end(), std::size_t{0},
      [](std::size_t sum, const std::string& text) { return sum + text.size(); });
}

bool LegalCompletion(const Terminal& m) {
  switch (m.completed_as) {
    case Terminal::CompletedAs::kNone:
      return false;
    case Terminal::CompletedAs::kStarted:
    case Terminal::CompletedAs::kExited:
      return !m.rejections.any();
    case Terminal::CompletedAs::kStartedWithThreadRejections:
    case Terminal::CompletedAs::kExitedWithThreadRejections:
      return m.rejections.any();
  }
  return false;
}

// The combination rules of the terminal: which of outcome, rejections, status, limit and reason go
// with a kind.
bool LegalTerminal(const Terminal& m) {
  if (m.kind == Terminal::Kind::kNone) {
    return false;
  }
  const bool completed = m.kind == Terminal::Kind::kCompleted;
  if (completed ? !LegalCompletion(m)
                : (m.completed_as != Terminal::CompletedAs::kNone || m.rejections.any())) {
    return false;
  }
  const bool status_required = m.kind == Terminal::Kind::kNonzeroExit;
  const bool status_allowed = status_required || m.kind == Terminal::Kind::kChildFailure;
  if (m.status.has_value() ? !status_allowed : status_required) {
    return false;
  }
  const bool limited = m.kind == Terminal::Kind::kLimitReached;
  const bool refused = m.kind == Terminal::Kind::kModuleRefused;
  return (m.limit != Terminal::Limit::kNone) == limited && m.reason.empty() == !refused;
}

// Code comes to a run only, and its place has to exist in a file.
bool LegalCode(const Execute& m) {
  if (m.code_bytes == 0) {
    return m.code_offset == 0;
  }
  return m.mode == Mode::kRun && m.code_bytes <= kCodeBytesMax && m.code_offset <= kCodeBytesMax;
}

bool PrintableAscii(const std::string& text) {
  return std::all_of(text.begin(), text.end(),
                     [](char c) { return c == '\n' || (c >= 32 && c <= 126); });
}

}  // namespace

std::string_view ProblemOf(const Hello& m) {
  return m.frame_bytes_max == 0 ? "invalid-payload" : "";
}

std::string_view ProblemOf(const Execute& m) {
  if (m.module_bytes > (512ULL << 20)) {
    return "module-too-large";
  }
  const std::size_t total = TotalBytes(m.arguments) + TotalBytes(m.environment);
  const bool legal = m.remaining_ms > 0 && total <= kArgumentsTotalBytesMax &&
                     !HoldsNul(m.arguments) && !HoldsNul(m.environment) &&
                     (m.mode == Mode::kRun || m.has_output) && LegalCode(m);
  return legal ? "" : "invalid-payload";
}

std::string_view ProblemOf(const Cancel& /*m*/) {
  return "";
}

std::string_view ProblemOf(const HelloAck& /*m*/) {
  return "";
}

std::string_view ProblemOf(const Ready& /*m*/) {
  return "";
}

std::string_view ProblemOf(const Started& /*m*/) {
  return "";
}

std::string_view ProblemOf(const Trace& m) {
  return m.text.empty() || !PrintableAscii(m.text) ? "invalid-payload" : "";
}

std::string_view ProblemOf(const Terminal& m) {
  if (m.trap && TotalBytes(m.trap->backtrace) > kBacktraceBytesMax) {
    return "invalid-payload";
  }
  return LegalTerminal(m) ? "" : "invalid-terminal";
}

}  // namespace bulkhead::wire
