// Attempts on the kernel's own surface: identity, namespaces, the machine, other conventions.
#include <asm/unistd.h>
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <signal.h>
#include <time.h>

#include "hostile/attempts.h"
#include "process/raw_call.h"

namespace bulkhead::hostile {
namespace {

using process::Call;

constexpr long kX32Bit = 0x40000000;
constexpr long kGetpidOf32Bits = 20;
// Newer than the headers of some build machines.
constexpr long kMapShadowStack = 453;
constexpr long kListMount = 458;
constexpr long kSeal = 462;
constexpr long kNobodysNumber = 700;
constexpr long kLargestNumber = 0x3FFFFFFF;

template <long number, long first = 0, long second = 0, long third = 0>
long Plain(const Target& /*target*/) {
  return Call(number, first, second, third);
}

long CallOf32Bits(const Target& /*target*/) {
  long result = kGetpidOf32Bits;
  __asm__ volatile("int $0x80" : "+a"(result) : : "memory", "r8", "r9", "r10", "r11");
  return result;
}

// Permits everything; other filters stay, so this is harmless until none may be added.
long AddFilter(const Target& /*target*/) {
  sock_filter allow = {BPF_RET | BPF_K, 0, 0, SECCOMP_RET_ALLOW};
  const sock_fprog program = {1, &allow};
  return Call(__NR_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program);
}

const Attempt kRows[] = {
    {"bpf", kKilled, Plain<__NR_bpf>},
    {"perf_event_open", kKilled, Plain<__NR_perf_event_open>},
    {"keyctl", kKilled, Plain<__NR_keyctl>},
    {"add_key", kKilled, Plain<__NR_add_key>},
    {"request_key", kKilled, Plain<__NR_request_key>},
    {"asynchronous io", kKilled, Plain<__NR_io_setup, 1>},
    {"a filter of its own", kAllowed, AddFilter, kKilled},
    {"strict seccomp", kKilled, Plain<__NR_seccomp, SECCOMP_SET_MODE_STRICT>},
    {"a ruleset of its own", ENOSYS, Plain<__NR_landlock_create_ruleset>},
    {"a user namespace", kKilled, Plain<__NR_unshare, CLONE_NEWUSER>},
    {"a network namespace", kKilled, Plain<__NR_unshare, CLONE_NEWNET>},
    {"a mount namespace", kKilled, Plain<__NR_unshare, CLONE_NEWNS>},
    {"another's namespace", kKilled, Plain<__NR_setns>},
    {"setuid", kKilled, Plain<__NR_setuid>},
    {"setgid", kKilled, Plain<__NR_setgid>},
    {"setreuid", kKilled, Plain<__NR_setreuid>},
    {"setresuid", kKilled, Plain<__NR_setresuid>},
    {"setresgid", kKilled, Plain<__NR_setresgid>},
    {"setgroups", kKilled, Plain<__NR_setgroups>},
    {"setfsuid", kKilled, Plain<__NR_setfsuid>},
    {"capset", kKilled, Plain<__NR_capset>},
    {"who am I", ENOSYS, Plain<__NR_getuid>},
    {"where am I", ENOSYS, Plain<__NR_uname>},
    {"load of the machine", ENOSYS, Plain<__NR_sysinfo>},
    {"load a module", kKilled, Plain<__NR_init_module>},
    {"load a module from a file", kKilled, Plain<__NR_finit_module>},
    {"unload a module", kKilled, Plain<__NR_delete_module>},
    {"kexec", kKilled, Plain<__NR_kexec_load>},
    {"kexec from a file", kKilled, Plain<__NR_kexec_file_load>},
    {"reboot", kKilled, Plain<__NR_reboot>},
    {"kernel log", kKilled, Plain<__NR_syslog>},
    {"ports", kKilled, Plain<__NR_ioperm>},
    {"port privilege", kKilled, Plain<__NR_iopl, 3>},
    {"set the clock", kKilled, Plain<__NR_clock_settime>},
    {"set the time of day", kKilled, Plain<__NR_settimeofday>},
    {"steer the clock", kKilled, Plain<__NR_adjtimex>},
    {"steer a clock", kKilled, Plain<__NR_clock_adjtime>},
    {"set the host name", kKilled,
     [](const Target&) { return Call(__NR_sethostname, "owned", 5); }},
    {"set the domain name", kKilled,
     [](const Target&) { return Call(__NR_setdomainname, "owned", 5); }},
    {"hang up terminals", kKilled, Plain<__NR_vhangup>},
    {"quota by descriptor", ENOSYS, Plain<__NR_quotactl_fd>},
    {"shadow stacks", ENOSYS, Plain<kMapShadowStack>},
    {"list of mounts", ENOSYS, Plain<kListMount>},
    {"sealed mappings", ENOSYS, Plain<kSeal>},
    {"a number nobody has", ENOSYS, Plain<kNobodysNumber>},
    {"the largest number", ENOSYS, Plain<kLargestNumber>},
    {"a call of the x32 kind", kKilled, Plain<kX32Bit | __NR_getpid>},
    {"a call of the 32-bit kind", kKilled, CallOf32Bits},
    {"a negative number", kKilled, Plain<-2>},
};

}  // namespace

const AttemptTable kKernel = {kRows, sizeof kRows / sizeof kRows[0]};

}  // namespace bulkhead::hostile
