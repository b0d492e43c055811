#include "contract/guest_abi.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace bulkhead::contract {
namespace {

constexpr std::string_view kThreads = "wasi";
constexpr std::string_view kPreview1 = "wasi_snapshot_preview1";

constexpr std::array kImports = {
    Import{Function::kKernelYield, kNamespace, "kernel_yield", ":",
           "Does nothing: a point at which other threads may run."},
    Import{Function::kOperationSubmit, kNamespace, "operation_submit", "iII:I",
           "Starts the operation of this kind with two arguments. A token, for some kinds the "
           "result itself; 0: refused."},
    Import{Function::kOperationPoll, kNamespace, "operation_poll", "I:I",
           "The result << 8 | status, which this consumes unless it is pending. Status 0x80 for "
           "what is no operation of this thread, was consumed, or is a read."},
    Import{Function::kOperationYield, kNamespace, "operation_yield", "I:i",
           "Suspends this thread until the operation has ended: 1. -1 for what is no operation of "
           "this thread."},
    Import{Function::kOperationCancel, kNamespace, "operation_cancel", "I:i",
           "Ends the operation as cancelled, unless it has ended: 1. 0 if it is none of this "
           "thread."},
    Import{Function::kStreamRead, kNamespace, "stream_read", "Iii:i",
           "Takes what is there from a blob, at most this many bytes and one chunk: the number. "
           "-1: refused. Does not wait. Traps for a range outside the memory or above 65536."},
    Import{Function::kStreamWrite, kNamespace, "stream_write", "Iii:i",
           "Appends to a blob what fits, at most one chunk: the number. -1: refused. Traps as "
           "stream_read."},
    Import{Function::kStreamClose, kNamespace, "stream_close", "I:i",
           "Gives a blob back: 0. 1: refused."},
    Import{Function::kReleaseEncryptedArchive, kNamespace, "resource_release_encrypted_archive",
           "I:i", "1: there is no such capability."},
    Import{Function::kReleaseAuthenticatedArchive, kNamespace,
           "resource_release_authenticated_archive", "I:i", "1: there is no such capability."},
    Import{Function::kReleaseArchiveEntry, kNamespace, "resource_release_archive_entry", "I:i",
           "1: there is no such capability."},
    Import{Function::kThreadSpawn, kThreads, "thread-spawn", "i:i",
           "Starts a thread in wasi_thread_start with its identity and this argument: the "
           "identity, above 0. -1: there cannot be one more."},
    Import{Function::kClockTimeGet, kPreview1, "clock_time_get", "iIi:i",
           "Stores 0: there is no clock to read. 21 for an address outside the memory."},
    Import{Function::kEnvironGet, kPreview1, "environ_get", "ii:i", "The environment is empty."},
    Import{Function::kEnvironSizesGet, kPreview1, "environ_sizes_get", "ii:i",
           "Stores 0 and 0. 21 for an address outside the memory; then nothing is stored."},
    Import{Function::kFdWrite, kPreview1, "fd_write", "iiii:i",
           "Accepts and forgets: stores 0 as the number written. 21 for an address outside the "
           "memory or more than 1024 parts; then nothing is stored."},
    Import{Function::kProcExit, kPreview1, "proc_exit",
           "i:", "Ends this thread: 0 is success, anything else is a failure of the run."},
    Import{Function::kSchedYield, kPreview1, "sched_yield", ":i", "As kernel_yield; 0."},
};

constexpr std::array kExports = {
    Export{"_start", ":", "The program, called once on the first thread."},
    Export{"__main_void", ":i", "What toolchains call main."},
    Export{"wasi_thread_start", "ii:", "The beginning of a thread: its identity, its argument."},
    Export{"bulkhead-run", ":i", "The program as a function with a result."},
};

constexpr std::array kOperationKinds = {
    OperationKind{1, "synthetic-yield", "", "operation / 1", true},
    OperationKind{2, "synthetic-create", "shareable 0 or 1, rights", "operation / token", true},
    OperationKind{3, "synthetic-use", "token, rights", "operation / 1", true},
    OperationKind{4, "synthetic-close", "token", "operation / 1", true},
    OperationKind{5, "blob-create", "", "operation / blob", true},
    OperationKind{6, "blob-write", "blob, bytes << 32 | address", "operation / 1", true},
    OperationKind{7, "blob-read", "blob, bytes at most", "operation / collect-read", true},
    OperationKind{8, "collect-read", "operation, bytes at most << 32 | address",
                  "bytes << 8 | status; 0 bytes are the end", true},
    OperationKind{9, "blob-seal", "blob", "operation / 1", true},
    OperationKind{10, "output-commit", "blob, output", "operation / 1", true},
    OperationKind{11, "output-grant", "", "output; 0 if there is none; first thread only", true},
    OperationKind{12, "clock-sleep", "milliseconds", "operation / 1", true},
    OperationKind{13, "url-grant", "", "0", false},
    OperationKind{14, "view-open", "", "0", false},
    OperationKind{15, "view-wait-load", "", "0", false},
    OperationKind{16, "view-capture", "", "0", false},
    OperationKind{17, "view-close", "", "0", false},
    OperationKind{18, "abandon-transfer", "operation", "1; 0: refused", true},
    OperationKind{19, "abandon-blob", "blob", "1; 0: refused", true},
    OperationKind{20, "encrypted-archives", "", "0", false, 29},
    OperationKind{30, "hash-create", "", "operation / hash (SHA-256)", true},
    OperationKind{31, "hash-update", "hash, bytes << 32 | address", "operation / 1", true},
    OperationKind{32, "hash-finalise", "hash, 32 << 32 | address", "1, the digest is stored; 0x80",
                  true},
    OperationKind{33, "abandon-hash", "hash", "1; 0: refused", true},
    OperationKind{34, "abandon-hash-operation", "operation", "1; 0: refused", true},
    OperationKind{35, "compiler-processes", "", "0", false, 48},
};

constexpr std::array kStatusBytes = {
    StatusByte{0, "pending", "not yet"},
    StatusByte{1, "completed", "the result is there"},
    StatusByte{2, "cancelled", "by the guest, or the run was cancelled"},
    StatusByte{3, "timed-out", "no byte moved for too long, or the run's deadline passed"},
    StatusByte{4, "trapped", "a host function refused the guest's arguments for good"},
    StatusByte{5, "owner-exited", "the thread that started it is gone"},
    StatusByte{6, "closed", "what it worked on was closed or sealed, or the run ended"},
    StatusByte{7, "rejected", "its conditions do not hold, or the system has no thread for it"},
    StatusByte{0x80, "error", "no such operation for this thread, or a bad destination"},
};

constexpr std::array kNumbers = {
    Number{"operations-max", 64, "started and not consumed, of the whole run"},
    Number{"transfer-bytes-max", 65'536, "moved by one call"},
    Number{"hash-bytes", 32, "of a digest"},
    Number{"threads-max", kThreadsMax, "started over the whole run; the host may allow fewer"},
    Number{"memory-pages-min", kMemoryPagesMin, "of 64 KiB"},
    Number{"memory-pages-max", kMemoryPagesMax, "declared; the host may allow fewer"},
};

constexpr std::array<std::string_view, 10> kTargetFeatures = {
    "atomics",         "bulk-memory", "bulk-memory-opt", "call-indirect-overlong",
    "extended-const",  "multivalue",  "mutable-globals", "nontrapping-fptoint",
    "reference-types", "sign-ext"};

constexpr std::array<std::string_view, 7> kCustomSections = {
    "name",        "producers",     ".debug_abbrev", ".debug_info",
    ".debug_line", ".debug_ranges", ".debug_str"};

std::string ValueTypes(std::string_view letters) {
  std::string text;
  for (const char letter : letters) {
    text += text.empty() ? "" : ", ";
    text += letter == 'I' ? "i64" : "i32";
  }
  return text;
}

void AppendLeb(std::size_t value, std::string& bytes) {
  constexpr std::size_t kGroup = 0x7F;
  for (; value > kGroup; value >>= 7) {
    bytes += static_cast<char>(0x80 | (value & kGroup));
  }
  bytes += static_cast<char>(value);
}

}  // namespace

std::span<const Import> Imports() {
  return kImports;
}

std::span<const Export> Exports() {
  return kExports;
}

std::span<const OperationKind> OperationKinds() {
  return kOperationKinds;
}

std::span<const StatusByte> StatusBytes() {
  return kStatusBytes;
}

std::span<const Number> Numbers() {
  return kNumbers;
}

std::span<const std::string_view> TargetFeatures() {
  return kTargetFeatures;
}

std::span<const std::string_view> CustomSections() {
  return kCustomSections;
}

std::string NumberText(const OperationKind& kind) {
  return kind.last == kind.number ? fmt::format("{}", kind.number)
                                  : fmt::format("{}-{}", kind.number, kind.last);
}

std::string TypeText(std::string_view signature) {
  const std::size_t colon = signature.find(':');
  const std::string result = ValueTypes(signature.substr(colon + 1));
  return fmt::format("({}) -> {}", ValueTypes(signature.substr(0, colon)),
                     result.empty() ? "()" : result);
}

std::string ManifestText() {
  std::string text = fmt::format("bulkhead guest contract\nabi {}\noperations {}\nnamespace {}\n",
                                 kAbiVersion, kOperationsRevision, kNamespace);
  text += fmt::format("memory {}.{} {} {} shared\n", kMemoryModule, kMemoryName, kMemoryPagesMin,
                      kMemoryPagesMax);
  text += fmt::format("features {}\n", fmt::join(kTargetFeatures, " "));
  for (const OperationKind& kind : kOperationKinds) {
    text += fmt::format("operation {} {}{}\n", NumberText(kind), kind.name,
                        kind.available ? "" : " unavailable");
  }
  for (const Import& import : kImports) {
    text +=
        fmt::format("import {}.{} {}\n", import.module, import.name, TypeText(import.signature));
  }
  text += fmt::format("export {} memory\n", kMemoryExport);
  for (const Export& item : kExports) {
    text += fmt::format("export {} {}\n", item.name, TypeText(item.signature));
  }
  return text;
}

std::string FeaturesBytes() {
  std::string bytes;
  AppendLeb(kTargetFeatures.size(), bytes);
  for (const std::string_view feature : kTargetFeatures) {
    bytes += '+';
    AppendLeb(feature.size(), bytes);
    bytes += feature;
  }
  return bytes;
}

}  // namespace bulkhead::contract
