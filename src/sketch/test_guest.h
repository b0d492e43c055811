// A guest thread as the tests play it: memory of its own or shared, and the calls of the contract
// with their usual arguments. Also the clock that only moves when told to.
#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <numeric>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "sketch/hub.h"

namespace bulkhead::sketch {

class FakeClock final : public Clock {
 public:
  MonotonicTime Now() const override { return MonotonicTime(since_start_.load()); }

  void Advance(std::chrono::nanoseconds by) { since_start_ = since_start_.load() + by; }

 private:
  std::atomic<std::chrono::nanoseconds> since_start_ =
      std::chrono::nanoseconds(std::chrono::hours(1));
};

// Waits for another thread to get somewhere; false after a bound that only a failure reaches.
template <class Condition>
bool Eventually(Condition condition) {
  const MonotonicTime give_up = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  while (!condition()) {
    if (std::chrono::steady_clock::now() > give_up) {
      return false;
    }
    std::this_thread::yield();
  }
  return true;
}

// A packed result, taken apart.
struct PollResult {
  std::uint64_t payload;
  OperationStatus status;

  explicit PollResult(std::int64_t packed)
      : payload(static_cast<std::uint64_t>(packed) >> 8),
        status(static_cast<OperationStatus>(packed & 0xff)) {}
};

class TestGuest {
 public:
  static constexpr std::uint32_t kMemoryBytes = 512 * 1024;

  explicit TestGuest(Hub& hub, Owner owner = kRootOwner)
      : hub_(hub), owner_(owner), bytes_(kMemoryBytes) {
    std::iota(bytes_.begin(), bytes_.end(), std::uint8_t{1});
  }

  Owner owner() const { return owner_; }

  std::vector<std::uint8_t>& bytes() { return bytes_; }

  wasi::GuestMemory memory() { return {bytes_.data(), bytes_.size()}; }

  std::int64_t Submit(Kind kind, std::uint64_t a0 = 0, std::uint64_t a1 = 0) {
    const Answer<std::int64_t> answer =
        hub_.Submit(owner_, static_cast<std::int32_t>(kind), a0, a1, memory());
    EXPECT_TRUE(answer) << "trapped";
    return answer.value_or(kRefused);
  }

  // An operation; 0 if refused.
  Token Start(Kind kind, std::uint64_t a0 = 0, std::uint64_t a1 = 0) {
    return static_cast<Token>(Submit(kind, a0, a1));
  }

  static std::uint64_t Range(std::uint32_t address, std::uint32_t bytes) {
    return std::uint64_t{bytes} << 32 | address;
  }

  Token Write(Token blob, std::uint32_t address, std::uint32_t bytes) {
    return Start(Kind::kBlobWrite, blob, Range(address, bytes));
  }

  Token Read(Token blob, std::uint32_t bytes_max) {
    return Start(Kind::kBlobRead, blob, bytes_max);
  }

  std::int64_t Collect(Token read, std::uint32_t address, std::uint32_t bytes) {
    return Submit(Kind::kCollectRead, read, Range(address, bytes));
  }

  std::int64_t Poll(Token operation) { return hub_.Poll(owner_, operation); }

  OperationStatus Status(Token operation) { return PollResult(Poll(operation)).status; }

  std::int32_t Yield(Token operation) { return hub_.Yield(owner_, operation); }

  std::int32_t Cancel(Token operation) { return hub_.Cancel(owner_, operation); }

  // Waits, then collects: the payload of a completed operation, or nothing.
  std::optional<std::uint64_t> Await(Token operation) {
    if (Yield(operation) != 1) {
      return std::nullopt;
    }
    const PollResult result(Poll(operation));
    return result.status == OperationStatus::kCompleted ? std::optional(result.payload)
                                                        : std::nullopt;
  }

  Token NewBlob() { return Await(Start(Kind::kBlobCreate)).value_or(0); }

  Token NewSynthetic(bool shareable, std::uint8_t rights) {
    return Await(Start(Kind::kSyntheticCreate, shareable ? 1 : 0, rights)).value_or(0);
  }

  bool Seal(Token blob) { return Await(Start(Kind::kBlobSeal, blob)) == 1; }

  // A blob with this content, and closed for more.
  Token SealedBlob(std::string_view content) {
    std::copy(content.begin(), content.end(), bytes_.begin());
    const Token blob = NewBlob();
    EXPECT_EQ(StreamWrite(blob, 0, static_cast<std::int32_t>(content.size())), content.size());
    EXPECT_TRUE(Seal(blob));
    return blob;
  }

  std::int32_t StreamRead(Token blob, std::uint32_t address, std::int32_t bytes) {
    const Answer<std::int32_t> answer = hub_.StreamRead(owner_, blob, address, bytes, memory());
    EXPECT_TRUE(answer) << "trapped";
    return answer.value_or(-2);
  }

  std::int32_t StreamWrite(Token blob, std::uint32_t address, std::int32_t bytes) {
    const Answer<std::int32_t> answer = hub_.StreamWrite(owner_, blob, address, bytes, memory());
    EXPECT_TRUE(answer) << "trapped";
    return answer.value_or(-2);
  }

  std::int32_t Close(Token blob) { return hub_.StreamClose(owner_, blob); }

 private:
  Hub& hub_;
  const Owner owner_;
  std::vector<std::uint8_t> bytes_;
};

// A hub on a clock that stands still, whose end is checked: nothing may be left.
class HubTest : public testing::Test {
 protected:
  void SetUp() override { Open({}); }

  void TearDown() override {
    hub_->Finish();
    const HubSnapshot end = hub_->Snapshot();
    EXPECT_EQ(end.live_operations, 0u);
    EXPECT_EQ(end.live_resources, 0u);
    EXPECT_EQ(end.live_blobs, 0u);
    EXPECT_EQ(end.pending_reads, 0u);
    EXPECT_EQ(end.pending_writes, 0u);
    EXPECT_EQ(end.live_timers, 0u);
    EXPECT_EQ(end.commit_jobs, 0u);
    EXPECT_EQ(end.retained_bytes, 0u);
  }

  void Open(HubConfig config) {
    hub_ = *Hub::Create(std::move(config), clock_);
    guest_.emplace(*hub_);
  }

  // ---- small limits, so that each is in reach ----
  static constexpr std::uint32_t kChunk = 100;
  static constexpr std::uint32_t kBlob = 400;
  static constexpr std::uint32_t kRetained = 1000;
  static constexpr std::uint32_t kTarget = 300'000;  // where results are collected to

  static HubLimits Small() {
    return {.chunk_bytes = kChunk,
            .blob_bytes = kBlob,
            .blobs_bytes = 600,
            .blobs = 3,
            .pending_reads = 3,
            .pending_writes = 5,
            .retained_bytes = kRetained};
  }

  void OpenSmall() { Open({.limits = Small()}); }

  Token FullBlob() {
    const Token blob = guest_->NewBlob();
    for (std::uint32_t at = 0; at < kBlob; at += kChunk) {
      EXPECT_EQ(guest_->StreamWrite(blob, at, kChunk), static_cast<std::int32_t>(kChunk));
    }
    return blob;
  }

  // What a read delivers when it is collected.
  std::vector<std::uint8_t> Collected(Token read) {
    const PollResult result(guest_->Collect(read, kTarget, kChunk));
    EXPECT_EQ(result.status, OperationStatus::kCompleted);
    return Written(kTarget, static_cast<std::uint32_t>(result.payload));
  }

  std::vector<std::uint8_t> Written(std::uint32_t address, std::uint32_t bytes) {
    const auto begin = guest_->bytes().begin() + address;
    return {begin, begin + bytes};
  }

  // ---- an output ----
  static constexpr std::string_view kOldOutput = "not emptied yet";

  void OpenWithOutput(CommitHooks hooks, std::uint64_t bytes_max = 1000) {
    UniqueFd file(memfd_create("output", MFD_CLOEXEC | MFD_ALLOW_SEALING));
    ASSERT_TRUE(file.valid());
    ASSERT_EQ(write(file.get(), kOldOutput.data(), kOldOutput.size()),
              static_cast<ssize_t>(kOldOutput.size()));
    output_ = UniqueFd(fcntl(file.get(), F_DUPFD_CLOEXEC, 0));
    Open({.output = OutputGrant{std::move(file), bytes_max}, .hooks = std::move(hooks)});
  }

  std::string OutputContent() const {
    std::string content(1000, '\0');
    const ssize_t got = pread(output_.get(), content.data(), content.size(), 0);
    EXPECT_GE(got, 0);
    content.resize(static_cast<std::size_t>(got));
    return content;
  }

  Token GetOutput() { return guest_->Start(Kind::kOutputGrant); }

  OperationStatus Commit(Token blob, Token output) {
    const Token commit = guest_->Start(Kind::kOutputCommit, blob, output);
    EXPECT_EQ(guest_->Yield(commit), 1);
    return guest_->Status(commit);
  }

  // The hooks make the first commit fail. It leaves no byte anywhere, and the output free for
  // another try.
  void ExpectFailsThenSucceeds() {
    const Token blob = guest_->SealedBlob("something else");
    EXPECT_EQ(Commit(blob, GetOutput()), OperationStatus::kRejected);
    EXPECT_EQ(OutputContent(), "");
    EXPECT_EQ(hub_->Snapshot().retained_bytes, 0u);
    EXPECT_EQ(hub_->Snapshot().committed_outputs, 0u);
    EXPECT_FALSE(hub_->output_facts().created);
    EXPECT_EQ(guest_->Close(blob), 1) << "consumed";
    EXPECT_EQ(Commit(guest_->SealedBlob("second"), GetOutput()), OperationStatus::kCompleted);
    EXPECT_EQ(OutputContent(), "second");
    EXPECT_TRUE(hub_->output_facts().created);
  }

  UniqueFd output_;  // a look at the granted file
  FakeClock clock_;
  std::unique_ptr<Hub> hub_;
  std::optional<TestGuest> guest_;
};

// Tests of the specification's scenarios are named after them.
using OneShot = HubTest;

}  // namespace bulkhead::sketch
