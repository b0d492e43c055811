// Linear memories made by us instead of the engine, so that their total is bounded and a refused
// growth is known.
//
// Each is one anonymous mapping: the whole range the engine wants reserved (so that its code needs
// no bounds checks), between guards, of which the part in use is accessible. All of it counts
// towards RLIMIT_DATA.
#pragma once

#include <wasmtime.h>

#include <atomic>
#include <cstdint>

namespace bulkhead::wasm {

// What all linear memories of the process may use together. Thread-safe.
class MemoryBudget {
 public:
  explicit MemoryBudget(std::uint64_t bytes_max) : bytes_max_(bytes_max) {}

  // All or nothing.
  [[nodiscard]] bool Take(std::uint64_t bytes);

  void Return(std::uint64_t bytes) { used_.fetch_sub(bytes); }

  void NoteRefusal() { refused_.store(true); }

  std::uint64_t bytes_max() const { return bytes_max_; }

  std::uint64_t peak() const { return peak_.load(); }

  // A memory was not made or did not grow because of the budget or because the process had no more
  // memory to give.
  bool refused() const { return refused_.load(); }

 private:
  const std::uint64_t bytes_max_;
  std::atomic<std::uint64_t> used_{0};
  std::atomic<std::uint64_t> peak_{0};
  std::atomic<bool> refused_{false};
};

// For the engine's configuration; the budget has to outlive the engine.
wasmtime_memory_creator_t MemoryCreator(MemoryBudget& budget);

}  // namespace bulkhead::wasm
