// The exit status of `bulkhead run`, from what became of the work. Pure.
#pragma once

#include <bulkhead/outcome.h>

#include <string_view>

namespace bulkhead::cli {

inline constexpr int kExitOk = 0;
inline constexpr int kExitGuestMax =
    119;  // guest codes above share it, so that our own stay distinct
inline constexpr int kExitOutOfFuel = 120;
inline constexpr int kExitLimit = 121;
inline constexpr int kExitUsage = 122;
inline constexpr int kExitDeadline = 124;
inline constexpr int kExitFailed = 125;
inline constexpr int kExitRefused = 126;
inline constexpr int kExitNotFound = 127;
inline constexpr int kExitSignalBase = 128;  // plus the signal's number, as shells do
inline constexpr int kExitTrapped = 134;
inline constexpr int kExitStdoutClosed = 141;

// Outcome::reason of a module that could not even be read.
inline constexpr std::string_view kReasonNotFound = "not-found";
inline constexpr std::string_view kReasonUnreadable = "unreadable";

// `signal`: the first signal that asked to stop, 0 if none did.
int ExitStatusOf(const Outcome& outcome, int signal);

}  // namespace bulkhead::cli
