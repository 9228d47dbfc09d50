// SPDX-License-Identifier: Apache-2.0
#include "base/descriptor_table.h"

#include <algorithm>
#include <filesystem>
#include <fstream>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include "base/fd.h"

namespace braid {
namespace {

// Entries of this process's table.
uint64_t table_size() {
  std::ifstream status("/proc/self/status");
  for (std::string word; status >> word;) {
    if (word != "FDSize:") continue;
    uint64_t size = 0;
    status >> size;
    return size;
  }
  return 0;
}

TEST(DescriptorTable, HasRoomForAllThatTheLimitAllows) {
  rlimit files{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &files), 0);
  reserve_descriptor_table();
  EXPECT_GE(table_size(), std::min<uint64_t>(files.rlim_cur, 65'536));
}

TEST(DescriptorTable, LeavesNoDescriptorOpen) {
  const auto count = [] {
    const std::filesystem::directory_iterator open("/proc/self/fd");
    return std::distance(begin(open), end(open));
  };
  const auto before = count();
  reserve_descriptor_table();
  EXPECT_EQ(count(), before);
}

TEST(DescriptorTable, KnowsWhetherSomeAreLeftAndRaisesTheLimit) {
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
  const int next_free = Fd(::open("/dev/null", O_RDONLY)).get();
  rlimit few = before;
  few.rlim_cur = static_cast<rlim_t>(next_free) + 4;
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &few), 0);
  EXPECT_TRUE(has_descriptors(4));
  EXPECT_FALSE(has_descriptors(5));
  raise_descriptor_limit();
  rlimit raised{};
  EXPECT_EQ(::getrlimit(RLIMIT_NOFILE, &raised), 0);
  EXPECT_EQ(raised.rlim_cur, before.rlim_max);
  EXPECT_TRUE(has_descriptors(5));
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &before), 0);
}

}  // namespace
}  // namespace braid
