// SPDX-License-Identifier: Apache-2.0
#include "base/memory_limit.h"

#include <cstdlib>
#include <fstream>

#include <gtest/gtest.h>

#include "ipc/temporary_directory.h"

namespace braid {
namespace {

constexpr uint64_t kGiB = 1ull << 30;

// A /proc and a /sys of its own.
class MemoryLimitTest : public ::testing::Test {
 protected:
  MemoryLimitTest() {
    write("/proc/meminfo", "MemTotal:       16777216 kB\nMemFree:         1000000 kB\n");
  }
  void write(const std::string& path, const std::string& text) const {
    const std::filesystem::path file(root_ + path);
    std::filesystem::create_directories(file.parent_path());
    std::ofstream(file) << text;
  }

  const TemporaryDirectory directory_;
  const std::string& root_ = directory_.path();
};

TEST_F(MemoryLimitTest, WithoutAControlGroupItIsTheMachines) {
  EXPECT_EQ(memory_limit(root_), 16 * kGiB);
}

TEST_F(MemoryLimitTest, AGroupsLimitCountsWhereItIsLess) {
  write("/proc/self/cgroup", "0::/system.slice/braidd.service\n");
  const std::string group = "/sys/fs/cgroup/system.slice/braidd.service";
  write(group + "/memory.max", "max\n");
  EXPECT_EQ(memory_limit(root_), 16 * kGiB);
  write(group + "/memory.max", "2147483648\n");
  EXPECT_EQ(memory_limit(root_), 2 * kGiB);
  write(group + "/memory.max", "99999999999999\n");
  EXPECT_EQ(memory_limit(root_), 16 * kGiB);
}

TEST_F(MemoryLimitTest, SoDoesThatOfAGroupAroundIt) {
  write("/proc/self/cgroup", "0::/pod/container\n");
  write("/sys/fs/cgroup/pod/container/memory.max", "8589934592\n");
  write("/sys/fs/cgroup/pod/memory.max", "4294967296\n");
  EXPECT_EQ(memory_limit(root_), 4 * kGiB);
}

TEST_F(MemoryLimitTest, InAContainerTheGroupIsTheRoot) {
  write("/proc/self/cgroup", "0::/\n");
  write("/sys/fs/cgroup/memory.max", "1073741824\n");
  EXPECT_EQ(memory_limit(root_), kGiB);
}

TEST_F(MemoryLimitTest, KnowsTheOlderControlGroups) {
  write("/proc/self/cgroup", "5:cpu,cpuacct:/x\n4:memory:/jobs/a\n0::/\n");
  write("/sys/fs/cgroup/memory/jobs/a/memory.limit_in_bytes", "3221225472\n");
  EXPECT_EQ(memory_limit(root_), 3 * kGiB);
}

TEST_F(MemoryLimitTest, WhatCannotBeReadIsNoLimit) {
  EXPECT_EQ(memory_limit(root_ + "/nowhere"), UINT64_MAX);
  write("/proc/self/cgroup", "nonsense\n0:\n");
  EXPECT_EQ(memory_limit(root_), 16 * kGiB);
  EXPECT_GT(memory_limit(), 0u);  // of this machine
  EXPECT_LT(memory_limit(), UINT64_MAX);
}

TEST_F(MemoryLimitTest, SharedMemoryIsWhatTheGroupHas) {
  write("/proc/meminfo", "MemTotal: 1000 kB\nShmem: 300 kB\n");
  EXPECT_EQ(shared_memory_used(root_), 300u << 10);
  write("/proc/self/cgroup", "0::/pod\n");
  write("/sys/fs/cgroup/pod/memory.stat", "anon 5\nshmem_thp 77\nshmem 4096\n");
  EXPECT_EQ(shared_memory_used(root_), 4096u);
  write("/proc/self/cgroup", "4:memory:/old\n0::/\n");
  write("/sys/fs/cgroup/memory/old/memory.stat", "shmem 1\ntotal_shmem 8192\n");
  EXPECT_EQ(shared_memory_used(root_), 8192u);
}

}  // namespace
}  // namespace braid
