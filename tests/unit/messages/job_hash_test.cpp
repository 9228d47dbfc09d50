// SPDX-License-Identifier: Apache-2.0
#include "messages/job_hash.h"

#include <set>
#include <string>

#include <gtest/gtest.h>

#include "base/hash.h"
#include "messages/colliding_names.h"

namespace braid {
namespace {

TEST(JobHashTest, IsTheSameOnAllNodesOfAJob) {
  EXPECT_EQ(JobHash(7).of_name("w"), JobHash(7).of_name("w"));
  EXPECT_EQ(JobHash(7).of(JobHash::Set, {1, 2}), JobHash(7).of(JobHash::Set, {1, 2}));
  EXPECT_NE(JobHash(7).of_name("w"), JobHash(8).of_name("w"));
  EXPECT_NE(JobHash(7).of(JobHash::Set, {1, 2}), JobHash(8).of(JobHash::Set, {1, 2}));
}

TEST(JobHashTest, NamesThatCollideWithoutAKeyDoNotWithOne) {
  ASSERT_EQ(fnv1a64(kOneName), fnv1a64(kAnother));
  for (uint64_t job = 1; job <= 100; ++job)
    EXPECT_NE(JobHash(job).of_name(kOneName), JobHash(job).of_name(kAnother));
}

TEST(JobHashTest, KindLengthAndOrderCount) {
  const JobHash job(7);
  std::set<uint64_t> hashes;
  for (const auto kind : {JobHash::Set, JobHash::Group, JobHash::Splits, JobHash::Signature}) {
    hashes.insert(job.of(kind, {1, 2}));
    hashes.insert(job.of(kind, {2, 1}));
    hashes.insert(job.of(kind, {1, 2, 0}));
    hashes.insert(job.of(kind, {1}));
  }
  hashes.insert(job.of_name(std::string("\1\0\0\0\0\0\0\0", 8)));
  EXPECT_EQ(hashes.size(), 17u);
  EXPECT_FALSE(hashes.contains(0));
}

}  // namespace
}  // namespace braid
