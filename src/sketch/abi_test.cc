#include "sketch/abi.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <string_view>

#include "contract/guest_abi.h"

namespace bulkhead::sketch {
namespace {

// Guests are written against the contract's tables; these are the same numbers as types.
TEST(SketchAbi, KindsAreThoseOfTheContract) {
  std::int32_t next = 1;
  for (const contract::OperationKind& row : contract::OperationKinds()) {
    EXPECT_EQ(row.number, next) << row.name << ": a gap, or twice";
    EXPECT_TRUE(row.last == row.number || !row.available) << row.name;
    for (; next <= row.last; ++next) {
      EXPECT_TRUE(IsKnownKind(next)) << next;
      EXPECT_EQ(AvailableKind(next).has_value(), row.available) << next;
    }
  }
  EXPECT_FALSE(IsKnownKind(0));
  EXPECT_FALSE(IsKnownKind(next));
}

TEST(SketchAbi, KindsMeanWhatTheContractSays) {
  const std::map<Kind, std::string_view> names = {
      {Kind::kSyntheticYield, "synthetic-yield"},
      {Kind::kSyntheticCreate, "synthetic-create"},
      {Kind::kSyntheticUse, "synthetic-use"},
      {Kind::kSyntheticClose, "synthetic-close"},
      {Kind::kBlobCreate, "blob-create"},
      {Kind::kBlobWrite, "blob-write"},
      {Kind::kBlobRead, "blob-read"},
      {Kind::kCollectRead, "collect-read"},
      {Kind::kBlobSeal, "blob-seal"},
      {Kind::kOutputCommit, "output-commit"},
      {Kind::kOutputGrant, "output-grant"},
      {Kind::kClockSleep, "clock-sleep"},
      {Kind::kAbandonTransfer, "abandon-transfer"},
      {Kind::kAbandonBlob, "abandon-blob"},
      {Kind::kHashCreate, "hash-create"},
      {Kind::kHashUpdate, "hash-update"},
      {Kind::kHashFinalise, "hash-finalise"},
      {Kind::kAbandonHash, "abandon-hash"},
      {Kind::kAbandonHashOperation, "abandon-hash-operation"},
  };
  for (const contract::OperationKind& kind : contract::OperationKinds()) {
    if (!kind.available) {
      continue;
    }
    const auto found = names.find(static_cast<Kind>(kind.number));
    ASSERT_NE(found, names.end()) << kind.name;
    EXPECT_EQ(found->second, kind.name);
  }
}

TEST(SketchAbi, StatusesAreThoseOfTheContract) {
  const std::map<std::int64_t, std::string_view> names = {
      {Packed(0, OperationStatus::kPending), "pending"},
      {Packed(0, OperationStatus::kCompleted), "completed"},
      {Packed(0, OperationStatus::kCancelled), "cancelled"},
      {Packed(0, OperationStatus::kTimedOut), "timed-out"},
      {Packed(0, OperationStatus::kTrapped), "trapped"},
      {Packed(0, OperationStatus::kOwnerExited), "owner-exited"},
      {Packed(0, OperationStatus::kClosed), "closed"},
      {Packed(0, OperationStatus::kRejected), "rejected"},
      {kPackedError, "error"},
  };
  ASSERT_EQ(contract::StatusBytes().size(), names.size());
  for (const contract::StatusByte& status : contract::StatusBytes()) {
    const auto found = names.find(status.number);
    ASSERT_NE(found, names.end()) << status.name;
    EXPECT_EQ(found->second, status.name);
  }
}

TEST(SketchAbi, NumbersAreThoseOfTheContract) {
  const auto number = [](std::string_view name) {
    const auto all = contract::Numbers();
    const auto found = std::ranges::find(all, name, &contract::Number::name);
    return found == all.end() ? 0 : found->value;
  };
  EXPECT_EQ(number("operations-max"), kOperationsMax);
  EXPECT_EQ(number("transfer-bytes-max"), kTransferBytesMax);
  EXPECT_EQ(number("hash-bytes"), kDigestBytes);
}

}  // namespace
}  // namespace bulkhead::sketch
