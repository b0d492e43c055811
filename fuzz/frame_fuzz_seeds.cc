#include "seeds.h"
#include "support/wire_samples.h"

namespace bulkhead::fuzz {

std::vector<std::string> Seeds() {
  std::vector<std::string> seeds;
  for (const auto& message : test::ToWorkerSamples()) {
    seeds.push_back(std::string(1, '\0') + wire::EncodeFrame({1, 7}, message).value());
  }
  for (const auto& message : test::FromWorkerSamples()) {
    seeds.push_back(std::string(1, '\1') + wire::EncodeFrame({1, 7}, message).value());
  }
  return seeds;
}

}  // namespace bulkhead::fuzz
