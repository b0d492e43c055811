// The numbers of the protocol; docs/protocol.md repeats them.
#pragma once

#include <cstdint>

namespace bulkhead::wire {

inline constexpr int kWorkerMessagesMax = 5;  // HelloAck, Ready, Started, Trace, Terminal
inline constexpr std::uint32_t kToWorkerBytesMax = 4U
                                                   << 20;  // an Execute with the largest arguments
inline constexpr std::uint32_t kFromWorkerBytesMax =
    128U << 10;  // a Trace, or a Terminal with its backtrace
inline constexpr std::uint32_t kDirectoryGrantsMax = 32;
inline constexpr std::uint32_t kArgumentBytesMax = 1U << 20;  // one argument or environment entry
inline constexpr std::uint32_t kArgumentsMax = 4096;          // arguments, and environment entries
inline constexpr std::uint32_t kArgumentsTotalBytesMax =
    3U << 20;  // all of both; leaves room in the frame
inline constexpr std::uint32_t kDiagnosticBytesMax = 1024;
inline constexpr std::uint32_t kBacktraceFramesMax = 64;
inline constexpr std::uint32_t kBacktraceBytesMax = 8U << 10;
// Compiled code: two to four times its module, and modules that long do not compile in the memory
// that workers have.
inline constexpr std::uint64_t kCodeBytesMax = 1ULL << 30;
inline constexpr std::uint32_t kTraceBytesMax = 64U << 10;

}  // namespace bulkhead::wire
