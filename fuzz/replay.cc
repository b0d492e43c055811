// A fuzz target as a plain test, for compilers without libFuzzer: the seeds, the files of the
// directories on the command line (a corpus), and seeded damage to each. With --write DIR the seeds
// become files there instead, for libFuzzer to begin with.
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "seeds.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

namespace {

constexpr std::uint32_t kSeed = 20240229;
// Shared out among the inputs: what takes some seconds under sanitizers.
constexpr std::size_t kMutants = 400'000;
constexpr std::size_t kMutantBytes = 40'000'000;
constexpr int kDamagesMax = 4;

void Feed(const std::string& input) {
  LLVMFuzzerTestOneInput(reinterpret_cast<const std::uint8_t*>(input.data()), input.size());
}

std::string ReadFile(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
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

int WriteSeeds(const std::filesystem::path& directory) {
  int number = 0;
  for (const std::string& seed : bulkhead::fuzz::Seeds()) {
    std::ofstream(directory / ("seed-" + std::to_string(number++)), std::ios::binary) << seed;
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc == 3 && std::string_view(argv[1]) == "--write") {
    return WriteSeeds(argv[2]);
  }
  std::vector<std::string> inputs = bulkhead::fuzz::Seeds();
  for (int i = 1; i < argc; ++i) {
    for (const auto& file : std::filesystem::directory_iterator(argv[i])) {
      inputs.push_back(ReadFile(file.path()));
    }
  }
  std::printf("%zu inputs, seed %u\n", inputs.size(), kSeed);
  std::mt19937 random(kSeed);
  for (const std::string& input : inputs) {
    Feed(input);
    std::size_t bytes = 0;
    for (std::size_t i = 0; i < kMutants / inputs.size() && bytes < kMutantBytes / inputs.size();
         ++i) {
      std::string mutant = input;
      for (unsigned damages = 1 + random() % kDamagesMax; damages > 0 && !mutant.empty();
           --damages) {
        Damage(mutant, random);
      }
      bytes += mutant.size();
      Feed(mutant);
    }
  }
  return 0;
}
