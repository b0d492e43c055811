// What a run's end means: from how a thread came back to the terminal the parent gets.
#pragma once

#include "wasm/guest_thread.h"

namespace bulkhead::wasm {

wire::Terminal Refused(const Error& error);
// The code that came with the module does not fit this engine.
wire::Terminal CodeRefused(const Error& error);
wire::Terminal WorkerFailure(const Error& error);
// No room for the memory that the module wants.
wire::Terminal MemoryRefused(const Error& error);
wire::Terminal Stopped(worker::StopCause cause);

// A run that ends with how this thread came back. The order of precedence: fuel, a decided stop,
// proc_exit, trap; a stop also overrides a normal return.
wire::Terminal EndedBy(const Execution& execution, GuestProgram& program, std::uint32_t thread);

// A thread of the sketch profile failed, and with it the run: which one, and of what.
wire::Terminal ChildFailure(const Execution& execution, GuestProgram& program,
                            std::uint32_t thread);

// What was used, as far as this can be known while other threads still run.
void FillFacts(const GuestProgram& program, wire::Terminal& terminal);

}  // namespace bulkhead::wasm
