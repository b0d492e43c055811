// Assembles the small classic-BPF programs seccomp runs, at compile time. Jumps are forward only,
// which is all a filter needs. A value type; no failure but a block longer than a jump can skip,
// which is a bug of ours and does not compile.
#pragma once

#include <linux/bpf_common.h>
#include <linux/filter.h>

#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>

#include "base/check.h"
#include "base/fixed_vector.h"

namespace bulkhead::worker {

inline constexpr std::size_t kInstructionsMax = 512;
inline constexpr std::size_t kPatchesMax = 8;

using BpfCode = FixedVector<sock_filter, kInstructionsMax>;

// What only run time knows.
enum class Slot : std::uint8_t {
  kOwnProcess,  // this process's id
};

// The operand of this instruction is the slot's value.
struct Patch {
  std::size_t instruction = 0;
  Slot slot = Slot::kOwnProcess;
};

struct FilterProgram {
  BpfCode code;
  FixedVector<Patch, kPatchesMax> patches;
};

class BpfAssembler {
 public:
  // The accumulator takes the 32-bit word at this offset of seccomp_data, resp. keeps only the bits
  // of `mask`.
  constexpr void Load(std::uint32_t offset) { Emit(BPF_LD | BPF_W | BPF_ABS, offset); }

  constexpr void And(std::uint32_t mask) { Emit(BPF_ALU | BPF_AND | BPF_K, mask); }

  // Ends the program with a SECCOMP_RET_* value.
  constexpr void Return(std::uint32_t value) { Emit(BPF_RET | BPF_K, value); }

  // Runs what `emit_block` emits only if the accumulator equals `value`; a block that does not
  // return falls through.
  template <class Block>
  constexpr void IfEqual(std::uint32_t value, const Block& emit_block) {
    const std::size_t jump = EmitComparison(value);
    emit_block();
    program_.code[jump].jf = DistanceFrom(jump);
  }

  template <class Block>
  constexpr void IfNotEqual(std::uint32_t value, const Block& emit_block) {
    IfNoneOf({&value, 1}, emit_block);
  }

  template <class Block>
  constexpr void IfNotEqual(Slot slot, const Block& emit_block) {
    program_.patches.push_back({program_.code.size(), slot});
    IfNotEqual(0U, emit_block);
  }

  // Runs the block if none of the values is in the accumulator.
  template <class Block>
  constexpr void IfNoneOf(std::span<const std::uint32_t> values, const Block& emit_block) {
    const std::size_t first = program_.code.size();
    for (const std::uint32_t value : values) {
      EmitComparison(value);
    }
    emit_block();
    for (std::size_t i = 0; i < values.size(); ++i) {
      program_.code[first + i].jt = DistanceFrom(first + i);
    }
  }

  constexpr const FilterProgram& program() const { return program_; }

 private:
  constexpr void Emit(std::uint16_t operation, std::uint32_t operand) {
    program_.code.push_back({operation, 0, 0, operand});
  }

  constexpr std::size_t EmitComparison(std::uint32_t value) {
    Emit(BPF_JMP | BPF_JEQ | BPF_K, value);
    return program_.code.size() - 1;
  }

  // What a jump there skips to get here.
  constexpr std::uint8_t DistanceFrom(std::size_t jump) const {
    const std::size_t distance = program_.code.size() - jump - 1;
    BH_CHECK(distance <= std::numeric_limits<std::uint8_t>::max());
    return static_cast<std::uint8_t>(distance);
  }

  FilterProgram program_;
};

}  // namespace bulkhead::worker
