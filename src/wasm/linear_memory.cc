#include "wasm/linear_memory.h"

#include <bulkhead/result.h>

#include <fmt/core.h>
#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <memory>
#include <optional>
#include <utility>

namespace bulkhead::wasm {
namespace {

// Page-aligned anonymous address space, inaccessible until opened.
class Reservation {
 public:
  static std::optional<Reservation> Make(std::size_t bytes) {
    void* const address =
        mmap(nullptr, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    return address == MAP_FAILED ? std::nullopt
                                 : std::optional<Reservation>(
                                       Reservation(static_cast<std::uint8_t*>(address), bytes));
  }

  Reservation(Reservation&& other) noexcept
      : address_(std::exchange(other.address_, nullptr)), bytes_(other.bytes_) {}

  Reservation& operator=(Reservation&&) = delete;
  Reservation(const Reservation&) = delete;
  Reservation& operator=(const Reservation&) = delete;

  ~Reservation() {
    if (address_ != nullptr) {
      munmap(address_, bytes_);
    }
  }

  std::uint8_t* address() const { return address_; }

  bool Open(std::size_t offset, std::size_t bytes) const {
    return bytes == 0 || mprotect(address_ + offset, bytes, PROT_READ | PROT_WRITE) == 0;
  }

  // Memories of several megabytes fill and run up to twice as fast on huge pages; without them
  // nothing is lost.
  void PreferHugePages() const { madvise(address_, bytes_, MADV_HUGEPAGE); }

 private:
  Reservation(std::uint8_t* address, std::size_t bytes) : address_(address), bytes_(bytes) {}

  std::uint8_t* address_;
  std::size_t bytes_;
};

struct MemoryShape {
  std::size_t minimum = 0;
  std::size_t capacity = 0;  // the memory never moves, so it never grows beyond
  std::size_t guard = 0;     // in front and behind
};

class LinearMemory {
 public:
  LinearMemory(MemoryBudget& budget, const MemoryShape& shape, Reservation reservation)
      : budget_(budget), shape_(shape), reservation_(std::move(reservation)) {}

  LinearMemory(const LinearMemory&) = delete;
  LinearMemory& operator=(const LinearMemory&) = delete;

  ~LinearMemory() { budget_.Return(size_); }

  std::uint8_t* base() const { return reservation_.address() + shape_.guard; }

  std::size_t size() const { return size_; }

  std::size_t capacity() const { return shape_.capacity; }

  // Sizes are multiples of the host's page size: the engine's pages have 64 KiB.
  bool GrowTo(std::size_t new_size) {
    if (new_size <= size_) {
      return new_size == size_;
    }
    const std::size_t added = new_size - size_;
    if (new_size > shape_.capacity || !budget_.Take(added)) {
      budget_.NoteRefusal();
      return false;
    }
    if (!reservation_.Open(shape_.guard + size_, added)) {
      budget_.Return(added);
      budget_.NoteRefusal();
      return false;
    }
    size_ = new_size;
    return true;
  }

 private:
  MemoryBudget& budget_;
  const MemoryShape shape_;
  const Reservation reservation_;
  std::size_t size_ = 0;
};

Result<std::unique_ptr<LinearMemory>> Make(MemoryBudget& budget, const MemoryShape& shape) {
  const std::size_t reserved_bytes = shape.capacity + 2 * shape.guard;
  std::optional<Reservation> reservation = Reservation::Make(reserved_bytes);
  if (!reservation) {
    budget.NoteRefusal();
    return Fail(
        ErrorCode::kResourceExhausted,
        fmt::format("no address space for a memory: {} bytes have to be reserved", reserved_bytes),
        errno);
  }
  reservation->PreferHugePages();
  auto memory = std::make_unique<LinearMemory>(budget, shape, *std::move(reservation));
  if (!memory->GrowTo(shape.minimum)) {
    return Fail(ErrorCode::kResourceExhausted,
                fmt::format("a memory of {} bytes does not fit into the limit of {} bytes",
                            shape.minimum, budget.bytes_max()));
  }
  return memory;
}

std::uint8_t* GetMemory(void* self, std::size_t* size, std::size_t* capacity) {
  const auto& memory = *static_cast<const LinearMemory*>(self);
  *size = memory.size();
  *capacity = memory.capacity();
  return memory.base();
}

wasmtime_error_t* GrowMemory(void* self, std::size_t new_size) {
  return static_cast<LinearMemory*>(self)->GrowTo(new_size)
             ? nullptr
             : wasmtime_error_new("memory limit reached");
}

void DeleteMemory(void* self) {
  delete static_cast<LinearMemory*>(self);
}

// NOLINTNEXTLINE(readability-function-size): the engine chose the parameters
wasmtime_error_t* NewMemory(void* budget_pointer, const wasm_memorytype_t* /*type*/,
                            std::size_t minimum, std::size_t /*maximum*/, std::size_t reserved,
                            std::size_t guard, wasmtime_linear_memory_t* result) {
  auto& budget = *static_cast<MemoryBudget*>(budget_pointer);
  Result<std::unique_ptr<LinearMemory>> memory =
      Make(budget, {minimum, std::max(minimum, reserved), guard});
  if (!memory) {
    return wasmtime_error_new(memory.error().message.c_str());
  }
  *result = {memory->release(), &GetMemory, &GrowMemory, &DeleteMemory};
  return nullptr;
}

}  // namespace

bool MemoryBudget::Take(std::uint64_t bytes) {
  std::uint64_t used = used_.load();
  do {
    if (bytes > bytes_max_ - used) {
      return false;
    }
  } while (!used_.compare_exchange_weak(used, used + bytes));
  std::uint64_t peak = peak_.load();
  while (used + bytes > peak && !peak_.compare_exchange_weak(peak, used + bytes)) {
  }
  return true;
}

wasmtime_memory_creator_t MemoryCreator(MemoryBudget& budget) {
  return {&budget, &NewMemory, nullptr};
}

}  // namespace bulkhead::wasm
