// The one file a run may publish on the host. A plain value; nothing is opened before the run
// starts.
//
// The destination is replaced as a whole or not touched at all: the run writes to a private file
// beside it, which takes the destination's place only after success.
#pragma once

#include <bulkhead/result.h>

#include <cstdint>
#include <string>

namespace bulkhead {

// Large enough for ordinary build products, small enough not to fill a disk by accident.
inline constexpr std::uint64_t kOutputBytesMaxDefault = std::uint64_t{1} << 30U;

struct OutputGrant {
  // Absolute, any bytes but NUL. The parent directory must exist; the last component is the file's
  // name.
  std::string path;
  // Fail instead of replacing an existing destination.
  bool no_clobber = false;
  // A larger output is not published.
  std::uint64_t bytes_max = kOutputBytesMaxDefault;

  // kInvalidArgument unless the path is absolute, has no `..` component, ends in one ordinary name
  // and fits the system's limits, and bytes_max is a possible file size above 0. Looks at the
  // values only, not at the disk.
  Status Validate() const;
};

}  // namespace bulkhead
