// The commands, each from its options to the exit status. They print; nothing else in this folder
// but text_io does.
#pragma once

#include <span>
#include <string_view>

#include "cli/options.h"

namespace bulkhead::cli {

int CmdRun(const RunOptions& options);
int CmdInspect(const InspectOptions& options);
int CmdGuestPack(const GuestPackOptions& options);
int CmdCache(const CacheOptions& options);
int CmdDoctor(const DoctorOptions& options);
int CmdAudit(const AuditOptions& options);
int CmdVersion(const VersionOptions& options);
int CmdHelp(const HelpOptions& options);
int CmdGenerate(const GenerateOptions& options);

// The whole program: parses, dispatches, never throws.
int Main(std::span<const char* const> arguments);

}  // namespace bulkhead::cli
