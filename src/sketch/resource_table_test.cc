#include "sketch/resource_table.h"

#include <gtest/gtest.h>

#include <utility>

namespace bulkhead::sketch {
namespace {

constexpr Owner kOther = 7;

Resource Synthetic(bool shareable, bool visible = true) {
  return {.shareable = shareable, .visible = visible, .body = SyntheticResource{}};
}

TEST(ResourceTable, OnlyTheOwnerFindsWhatIsNotShareable) {
  ResourceTable table;
  const Token own = table.Add(Synthetic(false));
  const Token shared = table.Add(Synthetic(true));
  EXPECT_NE(table.FindFor<SyntheticResource>(kRootOwner, own), nullptr);
  EXPECT_EQ(table.FindFor<SyntheticResource>(kOther, own), nullptr);
  EXPECT_NE(table.FindFor<SyntheticResource>(kOther, shared), nullptr);
  EXPECT_EQ(table.FindFor<OutputHandle>(kRootOwner, own), nullptr) << "another type";
  EXPECT_EQ(table.FirstOf(kRootOwner), own);
  EXPECT_EQ(table.FirstOf(kOther), std::nullopt);
}

TEST(ResourceTable, WhatWaitsForItsCreationIsInvisible) {
  ResourceTable table;
  const Token token = table.Add(Synthetic(false, false));
  EXPECT_EQ(table.FindFor<SyntheticResource>(kRootOwner, token), nullptr);
  table.Remove(token);
  EXPECT_FALSE(table.WasClosed(kRootOwner, token)) << "nobody knew of it";
}

TEST(ResourceTable, TombstonesTellClosedFromNeverThere) {
  ResourceTable table;
  const Token own = table.Add(Synthetic(false));
  const Token shared = table.Add(Synthetic(true));
  EXPECT_FALSE(table.WasClosed(kRootOwner, own));
  table.Remove(own);
  table.Remove(shared);
  EXPECT_TRUE(table.WasClosed(kRootOwner, own));
  EXPECT_FALSE(table.WasClosed(kOther, own)) << "it never was the other's";
  EXPECT_TRUE(table.WasClosed(kOther, shared));
  EXPECT_FALSE(table.WasClosed(kRootOwner, shared + 1000));
  EXPECT_FALSE(table.WasClosed(kRootOwner, 0)) << "an empty place is no tombstone";
}

TEST(ResourceTable, RemembersTheLast128) {
  ResourceTable table;
  const Token first = table.Add(Synthetic(false));
  table.Remove(first);
  for (std::uint32_t i = 1; i < kTombstonesMax; ++i) {
    table.Remove(table.Add(Synthetic(false)));
  }
  EXPECT_EQ(table.tombstones(), kTombstonesMax);
  EXPECT_TRUE(table.WasClosed(kRootOwner, first));
  table.Remove(table.Add(Synthetic(false)));
  EXPECT_FALSE(table.WasClosed(kRootOwner, first));
  EXPECT_EQ(table.tombstones(), kTombstonesMax);
}

}  // namespace
}  // namespace bulkhead::sketch
