// The contract between the host and guests of the sketch profile, as one table: what a module has
// to import and export, what it may ask for, and every number both sides must agree on. Admission
// compares modules with it, the worker binds its functions from it, and the guest's C header,
// docs/guest-abi.md and the manifest that each module carries are written from it.
//
// Constant data and pure functions; any thread.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace bulkhead::contract {

// A module carries the whole manifest and matches byte for byte: nothing is negotiated. Every
// change of the table changes the manifest; these say which kind of change it was.
inline constexpr std::uint32_t kAbiVersion = 1;
inline constexpr std::uint32_t kOperationsRevision = 1;

inline constexpr std::string_view kNamespace = "bulkhead:v1";
inline constexpr std::string_view kManifestSection = "bulkhead.abi";
inline constexpr std::string_view kFeaturesSection = "target_features";

// The one memory: imported, shared, of exactly this type.
inline constexpr std::string_view kMemoryModule = "env";
inline constexpr std::string_view kMemoryName = "memory";
inline constexpr std::string_view kMemoryExport = "memory";
inline constexpr std::uint64_t kMemoryPagesMin = 17;
inline constexpr std::uint64_t kMemoryPagesMax = 16'384;

inline constexpr std::uint32_t kThreadsMax = 16;
// Of each custom section that describes the module.
inline constexpr std::uint64_t kCustomSectionBytesMax = 128ULL << 10;

// Who answers a call.
enum class Function : std::uint8_t {
  kKernelYield,
  kOperationSubmit,
  kOperationPoll,
  kOperationYield,
  kOperationCancel,
  kStreamRead,
  kStreamWrite,
  kStreamClose,
  kReleaseEncryptedArchive,
  kReleaseAuthenticatedArchive,
  kReleaseArchiveEntry,
  kThreadSpawn,
  kClockTimeGet,
  kEnvironGet,
  kEnvironSizesGet,
  kFdWrite,
  kProcExit,
  kSchedYield,
};

struct Import {
  Function function;
  std::string_view module;
  std::string_view name;
  std::string_view signature;  // parameters, ':', result; 'i' is i32, 'I' is i64
  std::string_view meaning;
};

// In the order of the manifest.
std::span<const Import> Imports();

struct Export {
  std::string_view name;
  std::string_view signature;
  std::string_view meaning;
};

// The functions a module has to export beside its memory; nothing else may be exported.
std::span<const Export> Exports();

// A kind of operation_submit, or a family of kinds of a capability that no build has: their numbers
// are taken, but nothing else about them is agreed on.
struct OperationKind {
  std::int32_t number;
  std::string_view name;       // "blob-create"
  std::string_view arguments;  // "blob, bytes << 32 | address"
  std::string_view result;     // of submit / of poll
  bool available;              // false: refused, as a build without the capability does
  std::int32_t last = number;  // of a family
};

// Every kind there is, in the order of the numbers. Any other traps.
std::span<const OperationKind> OperationKinds();

struct StatusByte {
  std::uint8_t number;
  std::string_view name;  // "owner-exited"
  std::string_view meaning;
};

std::span<const StatusByte> StatusBytes();

struct Number {
  std::string_view name;  // "transfer-bytes-max"
  std::uint64_t value;
  std::string_view meaning;
};

// What a guest has to know and cannot ask for.
std::span<const Number> Numbers();

// Each with a '+' in front; a module has exactly these.
std::span<const std::string_view> TargetFeatures();

// Of custom sections that may be there beside the two that must; ".debug_" sections have such
// names.
std::span<const std::string_view> CustomSections();

// "7", "20-29" for a family.
std::string NumberText(const OperationKind& kind);
// "iII:I" -> "(i32, i64, i64) -> i64".
std::string TypeText(std::string_view signature);

// The content of kManifestSection.
std::string ManifestText();
// The content of kFeaturesSection.
std::string FeaturesBytes();

}  // namespace bulkhead::contract
