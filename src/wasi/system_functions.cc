// Arguments, environment, clocks, randomness, the end of the process, and the sockets that do not
// exist.
#include <sched.h>
#include <sys/random.h>

#include <algorithm>
#include <cstring>

#include "wasi/functions.h"
#include "wasi/guest_clock.h"
#include "wasi/wait.h"

namespace bulkhead::wasi {
namespace {

std::uint64_t StringsBytes(const std::vector<std::string>& strings) {
  std::uint64_t bytes = 0;
  for (const std::string& text : strings) {
    bytes += text.size() + 1;
  }
  return bytes;
}

Answer<void> StringsSizesGet(Call& call, const std::vector<std::string>& strings) {
  BH_WASI_TRY(call.CheckOut<std::uint32_t>(0));
  BH_WASI_TRY(call.CheckOut<std::uint32_t>(1));
  BH_WASI_TRY(call.Put(0, static_cast<std::uint32_t>(strings.size())));
  return call.Put(1, static_cast<std::uint32_t>(StringsBytes(strings)));
}

// An array of pointers to the NUL-terminated strings, and the strings.
Answer<void> StringsGet(Call& call, const std::vector<std::string>& strings) {
  const auto pointers = BH_WASI_TRY(call.Span(0, strings.size() * sizeof(std::uint32_t)));
  const auto texts = BH_WASI_TRY(call.Span(1, StringsBytes(strings)));
  std::size_t pointer_offset = 0;
  std::size_t text_offset = 0;
  for (const std::string& text : strings) {
    const auto address = static_cast<std::uint32_t>(call.U32(1) + text_offset);
    std::memcpy(pointers.data() + pointer_offset, &address, sizeof address);
    std::memcpy(texts.data() + text_offset, text.c_str(), text.size() + 1);
    pointer_offset += sizeof address;
    text_offset += text.size() + 1;
  }
  return {};
}

Answer<void> RefuseSocket(Call& call) {
  BH_WASI_TRY(call.Find(0, 0));
  return Refuse(Errno::kNotsock);
}

}  // namespace

Answer<void> ArgsGet(Call& call) {
  return StringsGet(call, call.wasi().args());
}

Answer<void> ArgsSizesGet(Call& call) {
  return StringsSizesGet(call, call.wasi().args());
}

Answer<void> EnvironGet(Call& call) {
  return StringsGet(call, call.wasi().env());
}

Answer<void> EnvironSizesGet(Call& call) {
  return StringsSizesGet(call, call.wasi().env());
}

Answer<void> ClockResGet(Call& call) {
  const clockid_t clock = BH_WASI_TRY(HostClock(call.U32(0)));
  timespec resolution{};
  if (clock_getres(clock, &resolution) != 0) {
    return RefuseHost();
  }
  return call.Put(1, ToNanoseconds(resolution));
}

// The precision the guest could do with (argument 1) is a hint; it always gets the best there is.
Answer<void> ClockTimeGet(Call& call) {
  const clockid_t clock = BH_WASI_TRY(HostClock(call.U32(0)));
  return call.Put(2, BH_WASI_TRY(NowNanoseconds(clock)));
}

Answer<void> ProcExit(Call& call) {
  call.wasi().SetExitCode(call.U32(0));
  return EndGuest(Control::kExit);
}

// There are no handlers to run, so a signal does what it does by default: nothing, or an end with
// 128 plus its number as a shell would report it. What would merely suspend the guest is kNotsup,
// since nobody could resume it.
Answer<void> ProcRaise(Call& call) {
  constexpr std::uint32_t kSignalsMax = 30;
  constexpr std::uint32_t kIgnored = 1U << 0 | 1U << 16 | 1U << 17 | 1U << 22 | 1U << 27;
  constexpr std::uint32_t kSuspending = 1U << 18 | 1U << 19 | 1U << 20 | 1U << 21;
  constexpr std::uint32_t kExitCodeOfSignal = 128;
  const std::uint32_t signal = call.U32(0);
  if (signal > kSignalsMax) {
    return Refuse(Errno::kInval);
  }
  if ((kIgnored >> signal & 1U) != 0) {
    return {};
  }
  if ((kSuspending >> signal & 1U) != 0) {
    return Refuse(Errno::kNotsup);
  }
  call.wasi().SetExitCode(kExitCodeOfSignal + signal);
  return EndGuest(Control::kExit);
}

Answer<void> RandomGet(Call& call) {
  // Between the pieces a stop is noticed; a gibibyte takes seconds.
  constexpr std::size_t kPieceBytes = 1 << 20;
  std::span<std::uint8_t> rest = BH_WASI_TRY(call.Span(0, call.U32(1)));
  while (!rest.empty()) {
    const ssize_t got = getrandom(rest.data(), std::min(rest.size(), kPieceBytes), 0);
    if (got < 0 && errno != EINTR) {
      return RefuseHost();
    }
    rest = rest.subspan(got < 0 ? 0 : static_cast<std::size_t>(got));
    if (!rest.empty() && Stopped(call.wasi().stop_event())) {
      return EndGuest(Control::kStopped);
    }
  }
  return {};
}

Answer<void> SchedYield(Call& /*call*/) {
  sched_yield();  // cannot fail on Linux
  return {};
}

Answer<void> SockAccept(Call& call) {
  return RefuseSocket(call);
}

Answer<void> SockRecv(Call& call) {
  return RefuseSocket(call);
}

Answer<void> SockSend(Call& call) {
  return RefuseSocket(call);
}

Answer<void> SockShutdown(Call& call) {
  return RefuseSocket(call);
}

}  // namespace bulkhead::wasi
