// One asynchronous operation of the guest, from its submission until its result is collected. All
// members need the hub's lock, but for `changed`, which is notified after it.
#pragma once

#include <bulkhead/deadline.h>

#include <condition_variable>
#include <cstdint>
#include <memory>
#include <optional>

#include "sketch/abi.h"
#include "sketch/buffer.h"
#include "sketch/token.h"

namespace bulkhead::sketch {

class Blob;

struct Operation {
  Operation(Owner by, Kind what) : owner(by), kind(what) {}

  bool pending() const { return status == OperationStatus::kPending; }

  bool is_transfer() const { return kind == Kind::kBlobRead || kind == Kind::kBlobWrite; }

  // Synthetic operations and the creation of a blob take effect when the guest suspends on them.
  bool is_deferred() const { return kind >= Kind::kSyntheticYield && kind <= Kind::kBlobCreate; }

  // The point in time at which it ends by itself, if any.
  std::optional<MonotonicTime> EndsAt(std::chrono::nanoseconds idle_timeout) const;

  const Token token = NextToken();
  const Owner owner;
  const Kind kind;
  OperationStatus status = OperationStatus::kPending;
  std::uint64_t payload = 0;    // the result, once completed
  Token target = 0;             // the resource it is about; what a creation creates
  std::uint8_t rights = 0;      // what a use asks for
  std::uint32_t bytes_max = 0;  // of a read
  Buffer buffer;                // a waiting write's bytes; a completed read's
  Blob* blob = nullptr;  // where a transfer waits; whoever removes the blob ends what waits there
  std::optional<MonotonicTime> wakes_at;  // of a sleep
  std::optional<MonotonicTime> armed_at;  // of a transfer that a thread waits for

  std::shared_ptr<Operation> next_woken;  // of the list that HubState hands out
  bool parked = false;                    // a guest thread waits for `changed`
  std::condition_variable changed;
};

}  // namespace bulkhead::sketch
