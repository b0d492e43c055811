#include "staging/staging_name.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <string>

#include "staging/proc_facts.h"
#include "staging/staging_testing.h"

namespace bulkhead::staging {
namespace {

TEST(ProcFacts, UmaskIsReadWithoutChangingIt) {
  const ScopedUmask mask(0137);
  EXPECT_EQ(ReadUmask().value_or(0), 0137U);
  EXPECT_EQ(umask(0137), 0137U);
}

TEST(StagingName, RoundTrips) {
  const OwnerIdentity self = Self();
  const std::string name = MakeStagingName(self);
  EXPECT_NE(name, MakeStagingName(self));
  EXPECT_EQ(ParseStagingName(name), self);
}

TEST(StagingName, LongestNameFitsADirectoryEntry) {
  const OwnerIdentity longest{
      std::numeric_limits<pid_t>::max(), std::numeric_limits<std::uint64_t>::max(),
      std::string(kBootIdDigits, 'f'), std::numeric_limits<std::uint64_t>::max()};
  const std::string name = MakeStagingName(longest);
  EXPECT_LE(name.size(), 255U);
  EXPECT_EQ(ParseStagingName(name), longest);
}

TEST(StagingName, AnythingElseIsNotAStagingName) {
  const std::string boot(kBootIdDigits, 'a');
  const std::string random(16, 'b');
  const std::string tail = "-2-" + boot + "-3-" + random;
  ASSERT_TRUE(ParseStagingName(".bulkhead-staging-1" + tail).has_value());
  for (const std::string& name :
       {std::string(), std::string(".bulkhead-staging-"), std::string("bulkhead-staging-1") + tail,
        std::string(".bulkhead-staging-0") + tail, std::string(".bulkhead-staging-01") + tail,
        std::string(".bulkhead-staging--1") + tail, std::string(".bulkhead-staging-+1") + tail,
        std::string(".bulkhead-staging-99999999999") + tail, ".bulkhead-staging-1" + tail + "-",
        ".bulkhead-staging-1" + tail + "b",
        ".bulkhead-staging-1-2-" + boot + "-3-" + std::string(16, 'B'),
        ".bulkhead-staging-1-2-" + boot.substr(1) + "-3-" + random,
        ".bulkhead-staging-1-2-" + boot + "-3-4-" + random,
        ".bulkhead-staging-1-2-" + boot + "-3"}) {
    EXPECT_FALSE(ParseStagingName(name).has_value()) << name;
  }
}

}  // namespace
}  // namespace bulkhead::staging
