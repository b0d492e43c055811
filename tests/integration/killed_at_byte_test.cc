// R6: a worker that is killed after any byte of what it says ends its run in exactly one way,
// leaves nothing behind, and does not concern the next run.
#include <algorithm>
#include <cstdlib>
#include <random>

#include "support/bulkhead_test.h"
#include "support/proc_view.h"
#include "workers/support/dies_at_byte.h"

namespace bulkhead::test {
namespace {

constexpr std::size_t kNever = std::size_t{1} << 40;

class KilledAtByte : public BulkheadTest {
 protected:
  RunReport RunUntil(std::size_t byte) {
    RunRequest request = RequestWithOutput("dies_at_byte");
    request.directories.push_back({alive_.path(), "/" + std::to_string(byte), true});
    request.stdout_to = GuestStream::Capture(2 * kDyingStdoutBytes);
    return Run(request);
  }

  // Where stdout begins and the transcript ends.
  struct Places {
    std::size_t stdout_at = 0;
    std::size_t end = 0;
  };

  Places Learn() {
    const RunReport report = RunUntil(kNever);
    ExpectOutcome(report, "worker-completed", kClean);
    EXPECT_EQ(report.stdout_captured, DyingStdout());
    ExpectPublished(kDyingOutput);
    return {std::stoul(report.trace), std::stoul(report.trace.substr(report.trace.find(' ')))};
  }

  void ExpectDeath(std::size_t byte, const Places& places) {
    SCOPED_TRACE("killed after byte " + std::to_string(byte));
    const RunReport report = RunUntil(byte);
    ExpectOutcome(report, "worker-unexpected-exit", kClean);
    EXPECT_EQ(report.worker_exit.find("signal 9"), 0U) << report.worker_exit;
    EXPECT_EQ(report.masked_code, byte == places.end ? "worker-completed" : "");
    const std::size_t printed = byte < places.stdout_at ? 0 : byte - places.stdout_at;
    EXPECT_EQ(report.stdout_captured, DyingStdout().substr(0, printed));
    ExpectDestinationUntouched();
    EXPECT_TRUE(NobodyHoldsAliveLock(alive_.path()));
  }

  // Every byte of every frame; of stdout, in which one place is like the other, a part unless
  // BH_KILLS=all.
  static std::vector<std::size_t> Bytes(const Places& places) {
    constexpr std::size_t kStride = 509;
    constexpr int kRandom = 100;
    const char* const choice = std::getenv("BH_KILLS");
    const bool all = choice != nullptr && std::string_view(choice) == "all";
    const std::size_t stdout_end = places.stdout_at + kDyingStdoutBytes;
    std::vector<std::size_t> bytes;
    for (std::size_t byte = 0; byte <= places.end; ++byte) {
      const bool inside = byte > places.stdout_at && byte < stdout_end;
      if (!inside || all || byte % kStride == 0) {
        bytes.push_back(byte);
      }
    }
    std::minstd_rand random(6);  // the same ones each time
    std::uniform_int_distribution<std::size_t> any(places.stdout_at, stdout_end);
    for (int i = 0; i < kRandom; ++i) {
      bytes.push_back(any(random));
    }
    return bytes;
  }

 private:
  TempDir alive_;
};

TEST_F(KilledAtByte, EndsInOneWayAndTheNextRunWorks) {
  const Places places = Learn();
  ASSERT_GT(places.end, places.stdout_at + kDyingStdoutBytes);
  for (const std::size_t byte : Bytes(places)) {
    ExpectDeath(byte, places);
    if (HasFailure()) {
      break;
    }
    if (byte % 64 == 0) {
      Learn();
    }
  }
  Learn();
  EXPECT_EQ(LedgerFaults(runtime().snapshot()), std::vector<std::string>());
}

}  // namespace
}  // namespace bulkhead::test
