// SPDX-License-Identifier: Apache-2.0
#include "base/descriptor_table.h"

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>

#include <gtest/gtest.h>
#include <sys/resource.h>

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

}  // namespace
}  // namespace braid
