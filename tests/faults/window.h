// The part of a traced program in which its system calls, and those of all it starts, are counted.
#pragma once

#include <sys/syscall.h>
#include <unistd.h>

namespace bulkhead::test {

// A call that no kernel knows: an option of prctl with "opens" or "closes" as its argument. For the
// tracer alone; the program learns nothing from the answer.
inline constexpr long kWindowCall = SYS_prctl;
inline constexpr long kWindowOption = 0x6268'6661;
inline constexpr long kWindowOpens = 1;
inline constexpr long kWindowCloses = 0;

inline void MarkWindow(long edge) {
  syscall(kWindowCall, kWindowOption, edge);
}

}  // namespace bulkhead::test
