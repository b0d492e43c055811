// Assembles the small classic-BPF programs seccomp runs. Jumps are forward only, which is all a
// filter needs. A value type; no failure but a block longer than a jump can skip, which is a bug of
// ours.
#pragma once

#include <linux/filter.h>

#include <cstdint>
#include <vector>

namespace bulkhead::worker {

class BpfAssembler {
 public:
  // The accumulator takes the 32-bit word at this offset of seccomp_data, resp. keeps only the bits
  // of `mask`.
  void Load(std::uint32_t offset);
  void And(std::uint32_t mask);
  // Ends the program with a SECCOMP_RET_* value.
  void Return(std::uint32_t value);

  // Runs `block` only if the accumulator equals `value`; a block that does not return falls
  // through.
  void IfEqual(std::uint32_t value, const BpfAssembler& block);
  void IfNotEqual(std::uint32_t value, const BpfAssembler& block);
  // Runs `block` if none of the values is in the accumulator.
  void IfNoneOf(const std::vector<std::uint32_t>& values, const BpfAssembler& block);

  const std::vector<sock_filter>& code() const { return code_; }

 private:
  void Emit(std::uint16_t operation, std::uint32_t operand);
  void Jump(std::uint32_t value, std::size_t skip_if_equal, std::size_t skip_if_not);
  void Append(const BpfAssembler& block);

  std::vector<sock_filter> code_;
};

}  // namespace bulkhead::worker
