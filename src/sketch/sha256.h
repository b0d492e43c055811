// One SHA-256 computation. One thread at a time; nothing fails.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <span>

#include "sketch/abi.h"

namespace bulkhead::sketch {

class Sha256 {
 public:
  Sha256();
  Sha256(const Sha256&) = delete;
  Sha256& operator=(const Sha256&) = delete;
  ~Sha256();

  void Update(std::span<const std::uint8_t> bytes);
  // Ends the computation: no call may follow.
  std::array<std::uint8_t, kDigestBytes> Finish();

 private:
  struct State;
  const std::unique_ptr<State> state_;
};

}  // namespace bulkhead::sketch
