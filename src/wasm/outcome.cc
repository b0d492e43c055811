#include "wasm/outcome.h"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

#include "wasm/trap.h"

namespace bulkhead::wasm {
namespace {

using Kind = wire::Terminal::Kind;
using CompletedAs = wire::Terminal::CompletedAs;

wire::Terminal LimitReached(wire::Terminal::Limit limit, std::string_view diagnostic) {
  wire::Terminal terminal = worker::MakeTerminal(Kind::kLimitReached, diagnostic);
  terminal.limit = limit;
  return terminal;
}

wire::Terminal Completed(bool exited, const wire::Terminal::Rejections& rejections) {
  wire::Terminal terminal = worker::MakeTerminal(Kind::kCompleted);
  terminal.rejections = rejections;
  if (rejections.any()) {
    terminal.completed_as = exited ? CompletedAs::kExitedWithThreadRejections
                                   : CompletedAs::kStartedWithThreadRejections;
  } else {
    terminal.completed_as = exited ? CompletedAs::kExited : CompletedAs::kStarted;
  }
  return terminal;
}

// What one proc_exit other than 0 means; the code's bits are kept.
wire::Terminal NonzeroExit(std::uint32_t code) {
  wire::Terminal terminal = worker::MakeTerminal(Kind::kNonzeroExit);
  terminal.status = static_cast<std::int32_t>(code);
  return terminal;
}

wire::Terminal::Trap Describe(const Return& returned) {
  return returned.trap != nullptr ? DescribeTrap(returned.trap.get())
                                  : DescribeError(returned.error.get());
}

// For code that was unwound by neither fuel, stop nor exit.
wire::Terminal FailedIn(const Execution& execution, std::uint32_t thread) {
  const Return& returned = execution.last();
  if (!execution.instantiated.normal() && returned.trap == nullptr) {
    // Linking was done before: what is left to go wrong is that memories and tables do not fit into
    // the limits.
    return LimitReached(wire::Terminal::Limit::kMemory, MessageOf(returned.error.get()));
  }
  wire::Terminal terminal = worker::MakeTerminal(Kind::kTrapped);
  terminal.trap = Describe(returned);
  terminal.trap->thread = thread;
  return terminal;
}

std::uint64_t MemoryPeak(const GuestProgram& program) {
  // A shared memory never shrinks.
  const std::uint64_t shared = program.shared_memory == nullptr
                                   ? 0
                                   : wasmtime_sharedmemory_data_size(program.shared_memory.get());
  return program.budget->peak() + shared;
}

struct OutputState {
  bool created = false;
  bool limit_hit = false;
};

OutputState OutputOf(const GuestProgram& program) {
  if (program.hub != nullptr) {
    const sketch::OutputFacts facts = program.hub->output_facts();
    return {facts.created, facts.limit_hit};
  }
  const wasi::WasiFacts facts = program.wasi->Facts();
  return {facts.output_created, facts.output_limit_hit};
}

}  // namespace

wire::Terminal Refused(const Error& error) {
  wire::Terminal terminal = worker::MakeTerminal(Kind::kModuleRefused, error.message);
  terminal.reason = error.reason;
  return terminal;
}

wire::Terminal CodeRefused(const Error& error) {
  return worker::MakeTerminal(Kind::kCodeRefused, error.message);
}

wire::Terminal WorkerFailure(const Error& error) {
  return worker::MakeTerminal(Kind::kWorkerFailure, error.message);
}

wire::Terminal MemoryRefused(const Error& error) {
  return LimitReached(wire::Terminal::Limit::kMemory, error.message);
}

wire::Terminal Stopped(worker::StopCause cause) {
  switch (cause) {
    case worker::StopCause::kCancelled:
      return worker::MakeTerminal(Kind::kCancelled);
    case worker::StopCause::kDeadlineExceeded:
      return worker::MakeTerminal(Kind::kDeadlineExceeded);
  }
  return worker::MakeTerminal(Kind::kCancelled);
}

wire::Terminal EndedBy(const Execution& execution, GuestProgram& program, std::uint32_t thread) {
  if (execution.out_of_fuel()) {
    return worker::MakeTerminal(Kind::kOutOfFuel);
  }
  if (const std::optional<worker::StopCause> stop = program.control->stop()) {
    return Stopped(*stop);
  }
  const bool exited = execution.unwound_by == wasi::Control::kExit;
  if (exited && execution.exit_code != 0) {
    return NonzeroExit(execution.exit_code);
  }
  if (execution.unwound_by == wasi::Control::kStdoutLimit) {
    return LimitReached(wire::Terminal::Limit::kOutput, "standard output reached its limit");
  }
  if (!exited && !execution.last().normal()) {
    return FailedIn(execution, thread);
  }
  if (OutputOf(program).limit_hit) {
    return LimitReached(wire::Terminal::Limit::kOutput, "the output file reached its limit");
  }
  return Completed(exited,
                   program.threads ? program.threads->rejections() : wire::Terminal::Rejections{});
}

wire::Terminal ChildFailure(const Execution& execution, GuestProgram& program,
                            std::uint32_t thread) {
  wire::Terminal cause = EndedBy(execution, program, thread);
  if (cause.kind == Kind::kCancelled || cause.kind == Kind::kDeadlineExceeded) {
    return cause;
  }
  std::string what = cause.diagnostic;
  if (cause.kind == Kind::kOutOfFuel) {
    what = "all its fuel is used up";
  } else if (cause.status) {
    what = fmt::format("it exited with {}", *cause.status);
  } else if (cause.trap) {
    what = cause.trap->message;
  }
  wire::Terminal terminal =
      worker::MakeTerminal(Kind::kChildFailure, fmt::format("thread {}: {}", thread, what));
  terminal.status = cause.status;
  terminal.trap = std::move(cause.trap);
  return terminal;
}

void FillFacts(const GuestProgram& program, wire::Terminal& terminal) {
  wire::Terminal::Facts& facts = terminal.facts;
  facts.memory_bytes_peak = MemoryPeak(program);
  facts.memory_growth_refused = program.budget->refused();
  facts.output_created = OutputOf(program).created;
  if (program.threads) {
    facts.fuel_used += program.threads->fuel_used();
  }
}

}  // namespace bulkhead::wasm
