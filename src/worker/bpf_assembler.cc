#include "worker/bpf_assembler.h"

#include <linux/bpf_common.h>

#include <limits>

#include "base/check.h"

namespace bulkhead::worker {

void BpfAssembler::Emit(std::uint16_t operation, std::uint32_t operand) {
  code_.push_back({operation, 0, 0, operand});
}

void BpfAssembler::Load(std::uint32_t offset) {
  Emit(BPF_LD | BPF_W | BPF_ABS, offset);
}

void BpfAssembler::And(std::uint32_t mask) {
  Emit(BPF_ALU | BPF_AND | BPF_K, mask);
}

void BpfAssembler::Return(std::uint32_t value) {
  Emit(BPF_RET | BPF_K, value);
}

void BpfAssembler::Jump(std::uint32_t value, std::size_t skip_if_equal, std::size_t skip_if_not) {
  constexpr std::size_t kFarthest = std::numeric_limits<std::uint8_t>::max();
  BH_CHECK(skip_if_equal <= kFarthest);
  BH_CHECK(skip_if_not <= kFarthest);
  code_.push_back({BPF_JMP | BPF_JEQ | BPF_K, static_cast<std::uint8_t>(skip_if_equal),
                   static_cast<std::uint8_t>(skip_if_not), value});
}

void BpfAssembler::Append(const BpfAssembler& block) {
  code_.insert(code_.end(), block.code_.begin(), block.code_.end());
}

void BpfAssembler::IfEqual(std::uint32_t value, const BpfAssembler& block) {
  Jump(value, 0, block.code_.size());
  Append(block);
}

void BpfAssembler::IfNotEqual(std::uint32_t value, const BpfAssembler& block) {
  Jump(value, block.code_.size(), 0);
  Append(block);
}

void BpfAssembler::IfNoneOf(const std::vector<std::uint32_t>& values, const BpfAssembler& block) {
  for (std::size_t i = 0; i < values.size(); ++i) {
    const std::size_t comparisons_left = values.size() - i - 1;
    Jump(values[i], comparisons_left + block.code_.size(), 0);
  }
  Append(block);
}

}  // namespace bulkhead::worker
