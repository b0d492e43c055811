// Mixed load for one Runtime: workers that complete, fail, misbehave, are cancelled or killed, on
// spares or started for the run, with outputs; what and when is drawn from a seed. Each run is
// checked against what may come of it.
#pragma once

#include <bulkhead/run.h>

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <random>
#include <string>
#include <vector>

namespace bulkhead::test {

class Chaos {
 public:
  static constexpr std::uint32_t kSpares = 2;

  // Outputs go to files of `directory`, one for each thread: they begin as kOldContent, and are
  // that, kNewContent or empty ever after.
  Chaos(std::string directory, std::uint64_t seed);
  Chaos(const Chaos&) = delete;
  Chaos& operator=(const Chaos&) = delete;
  ~Chaos();

  static constexpr std::string_view kOldContent = "old";
  static constexpr std::string_view kNewContent = "honest output";

  // So many runs on each of so many threads; comes back when all have ended. One line for each
  // thing that must not be.
  std::vector<std::string> Run(int threads, int runs);

  // Waits until nothing goes on but spares that wait; false if that does not come to be.
  bool Settle();

  Runtime& runtime() { return *runtime_; }

  // How long undisturbed runs took since the last call, in milliseconds, sorted.
  std::vector<double> TakeTimes();

 private:
  class Disturber;
  struct Kind;

  static const std::vector<Kind>& Kinds();

  void RunSome(int thread, int runs, std::uint64_t seed);
  std::string RunOne(const Kind& kind, const std::string& destination, std::mt19937_64& random);
  // What is wrong with it, empty if nothing is.
  static std::string Judge(const Kind& kind, const RunReport& report,
                           const std::string& destination, const std::string& before);

  std::string directory_;
  std::mt19937_64 random_;
  AdmittedModule empty_;
  std::optional<AdmittedModule> spinning_;  // where there is wat2wasm
  bool escapes_are_caught_ = false;
  std::unique_ptr<Disturber> disturber_;
  std::unique_ptr<Runtime> runtime_;

  std::mutex mutex_;
  std::vector<std::string> faults_;
  std::vector<double> times_;
};

}  // namespace bulkhead::test
