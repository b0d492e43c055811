// Attempts to make code, and to get at memory in ways that no limit counts.
#include <asm/unistd.h>
#include <errno.h>
#include <sys/mman.h>

#include "hostile/attempts.h"
#include "process/raw_call.h"

namespace bulkhead::hostile {
namespace {

using process::Call;

constexpr size_t kPageBytes = 4096;
constexpr long kReadImpliesExec = 0x0400000;  // personality(2)
constexpr long kNoRandomisation = 0x0040000;

template <long number, long first = 0, long second = 0, long third = 0>
long Plain(const Target& /*target*/) {
  return Call(number, first, second, third);
}

template <int protection>
long Map(const Target& /*target*/) {
  return Call(__NR_mmap, 0, kPageBytes, protection, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
}

template <long number, int protection>
long Protect(const Target& target) {
  const long page = Map < PROT_READ | PROT_WRITE > (target);
  return page < 0 ? page : Call(number, page, kPageBytes, protection, -1);
}

// Code from a file that was filled without ever being mapped writable.
long MapHeldFile(const Target& target) {
  return Call(__NR_mmap, 0, kPageBytes, PROT_READ | PROT_EXEC, MAP_SHARED, target.held_stream, 0);
}

const Attempt kRows[] = {
    {"map writable code", kKilled, Map<PROT_READ | PROT_WRITE | PROT_EXEC>},
    {"map code", kKilled, Map<PROT_READ | PROT_EXEC>},
    {"map code of a held descriptor", kKilled, MapHeldFile},
    {"make code writable", kKilled, Protect<__NR_mprotect, PROT_READ | PROT_WRITE | PROT_EXEC>},
    {"make code", kAllowed, Protect<__NR_mprotect, PROT_READ | PROT_EXEC>, kKilled},
    {"make code that can only be executed", kAllowed, Protect<__NR_mprotect, PROT_EXEC>, kKilled},
    {"make code by a key", kKilled, Protect<__NR_pkey_mprotect, PROT_READ | PROT_EXEC>},
    {"make everything readable code", kKilled, Plain<__NR_personality, kReadImpliesExec>},
    {"do without random addresses", kKilled, Plain<__NR_personality, kNoRandomisation>},
    {"segments of its own", kKilled, Plain<__NR_modify_ldt>},
    {"faults handled in user space", kKilled, Plain<__NR_userfaultfd>},
    {"reorder a mapping", ENOSYS, Plain<__NR_remap_file_pages>},
    {"lock all memory", ENOSYS, Plain<__NR_mlockall, 3>},
    {"lock memory", ENOSYS, Plain<__NR_mlock, 0, 4096>},
    {"secret memory", ENOSYS, Plain<__NR_memfd_secret>},
    {"attach shared memory", ENOSYS, Plain<__NR_shmat>},
    {"memory of other nodes", ENOSYS, Plain<__NR_mbind>},
    {"keys of memory", ENOSYS, Plain<__NR_pkey_alloc>},
    {"segment bases", ENOSYS, Plain<__NR_arch_prctl, 0x1001>},
};

}  // namespace

const AttemptTable kMemory = {kRows, sizeof kRows / sizeof kRows[0]};

}  // namespace bulkhead::hostile
