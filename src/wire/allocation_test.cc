// What a peer merely announces must not make this side allocate: the largest single request is
// watched while hostile lengths and counts are decoded. The program's operator new is replaced for
// that.
#include <gtest/gtest.h>
#include <sys/socket.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <new>
#include <string>

#include "support/wire_samples.h"
#include "wire/channel.h"
#include "wire/frame.h"

namespace {

std::atomic<std::size_t> largest_allocation{0};

void* AllocateCounted(std::size_t bytes) {
  std::size_t seen = largest_allocation.load();
  while (bytes > seen && !largest_allocation.compare_exchange_weak(seen, bytes)) {
  }
  void* memory = std::malloc(std::max<std::size_t>(bytes, 1));
  if (memory == nullptr) {
    throw std::bad_alloc();
  }
  return memory;
}

}  // namespace

void* operator new(std::size_t bytes) {
  return AllocateCounted(bytes);
}

void operator delete(void* memory) noexcept {
  std::free(memory);
}

void operator delete(void* memory, std::size_t /*bytes*/) noexcept {
  std::free(memory);
}

namespace bulkhead::wire {
namespace {

// Messages of a few hundred bytes and their error texts need no more than this.
constexpr std::size_t kModestBytes = 64U << 10;

class Allocation : public testing::Test {
 protected:
  void SetUp() override { largest_allocation = 0; }
};

// Every aligned and unaligned u32 of every sample becomes a huge count or length in turn.
TEST_F(Allocation, HugeCountsAndLengthsAllocateNothing) {
  for (const FromWorker& message : test::FromWorkerSamples()) {
    const std::string frame = *EncodeFrame({1, 7}, message);
    const std::string body(test::BodyOf(frame));
    const Kind kind = DecodeHeader(test::HeaderOf(frame), Direction::kFromWorker)->kind;
    for (std::size_t at = 0; at + 4 <= body.size(); ++at) {
      for (const std::uint32_t huge : {0xFFFFFFFFU, 0x7FFFFFFFU, 0x10000U}) {
        std::string mutated = body;
        std::memcpy(mutated.data() + at, &huge, sizeof huge);
        static_cast<void>(DecodeFromWorker(kind, mutated));
        ASSERT_LE(largest_allocation.load(), kModestBytes) << "at " << at;
      }
    }
  }
}

TEST_F(Allocation, OversizeHeadersAllocateNothingInTheChannel) {
  ChannelPair pair = *MakeChannelPair();
  const auto header = EncodeHeader({Kind::kTrace, 0xFFFFFFFF, 1, 7});
  ASSERT_EQ(send(pair.worker.get(), header.data(), header.size(), MSG_NOSIGNAL),
            static_cast<ssize_t>(header.size()));
  Channel parent(std::move(pair.parent), Direction::kFromWorker);
  Frame frame;
  const Result<Channel::Read> read = parent.Receive(&frame);
  ASSERT_FALSE(read.has_value());
  EXPECT_EQ(read.error().reason, "frame-too-large");
  EXPECT_LE(largest_allocation.load(), kModestBytes);
}

// A legal announcement costs at most what the header allows, and only once.
TEST_F(Allocation, LegalAnnouncementsCostAtMostOneFrame) {
  ChannelPair pair = *MakeChannelPair();
  const auto header = EncodeHeader({Kind::kTrace, kFromWorkerBytesMax, 1, 7});
  ASSERT_EQ(send(pair.worker.get(), header.data(), header.size(), MSG_NOSIGNAL),
            static_cast<ssize_t>(header.size()));
  Channel parent(std::move(pair.parent), Direction::kFromWorker);
  Frame frame;
  EXPECT_EQ(*parent.Receive(&frame), Channel::Read::kWouldBlock);
  EXPECT_LE(largest_allocation.load(), 2 * (kHeaderBytes + kFromWorkerBytesMax));
}

}  // namespace
}  // namespace bulkhead::wire
