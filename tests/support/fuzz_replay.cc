// The fuzz target of the frames as a plain test, for compilers without libFuzzer: the sample
// messages, each alone and with seeded damage. Also takes files of a corpus on the command line.
#include <cstdint>
#include <cstdio>
#include <random>
#include <string>
#include <vector>

#include "support/temp_dir.h"
#include "support/wire_samples.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

namespace {

using bulkhead::wire::EncodeFrame;

constexpr std::uint32_t kSeed = 20240229;
constexpr int kMutantsPerSample = 20'000;
constexpr int kDamagesMax = 4;

void Feed(const std::string& input) {
  LLVMFuzzerTestOneInput(reinterpret_cast<const std::uint8_t*>(input.data()), input.size());
}

std::vector<std::string> Samples() {
  std::vector<std::string> samples;
  for (const auto& message : bulkhead::test::ToWorkerSamples()) {
    samples.push_back(std::string(1, '\0') + EncodeFrame({1, 7}, message).value());
  }
  for (const auto& message : bulkhead::test::FromWorkerSamples()) {
    samples.push_back(std::string(1, '\1') + EncodeFrame({1, 7}, message).value());
  }
  return samples;
}

void Damage(std::string& input, std::mt19937& random) {
  const std::size_t at = random() % input.size();
  switch (random() % 4) {
    case 0:
      input[at] = static_cast<char>(random());
      break;
    case 1:
      input.erase(at, 1 + random() % 8);
      break;
    case 2:
      input.insert(at, 1 + random() % 8, static_cast<char>(random()));
      break;
    default:
      input[at] = static_cast<char>(static_cast<unsigned char>(input[at]) ^ (1U << (random() % 8)));
      break;
  }
}

}  // namespace

int main(int argc, char** argv) {
  for (int i = 1; i < argc; ++i) {
    Feed(bulkhead::test::ReadFile(argv[i]));
  }
  std::mt19937 random(kSeed);
  std::printf("seed %u\n", kSeed);
  for (const std::string& sample : Samples()) {
    Feed(sample);
    for (int i = 0; i < kMutantsPerSample; ++i) {
      std::string mutant = sample;
      for (unsigned damages = 1 + random() % kDamagesMax; damages > 0 && !mutant.empty();
           --damages) {
        Damage(mutant, random);
      }
      Feed(mutant);
    }
  }
  return 0;
}
