// The functions of WASI preview 1, complete: what a module of profile wasi may import, and nothing
// else.
#pragma once

#include <array>
#include <string_view>

namespace bulkhead::admission {

inline constexpr std::string_view kPreview1Module = "wasi_snapshot_preview1";
inline constexpr std::size_t kPreview1Functions = 46;

struct Preview1Function {
  std::string_view name;
  std::string_view type;  // as ExternTypeText shows it
};

// Sorted by name.
extern const std::array<Preview1Function, kPreview1Functions> kPreview1Imports;

// nullptr if preview 1 has no such function.
const Preview1Function* FindPreview1Function(std::string_view name);

}  // namespace bulkhead::admission
