// SPDX-License-Identifier: Apache-2.0
#include "bench/environment.h"

#include <gtest/gtest.h>
#include <stdlib.h>

namespace braid::bench {
namespace {

class EnvironmentTest : public testing::Test {
 protected:
  void SetUp() override { set(nullptr, nullptr, nullptr); }
  void TearDown() override { set(nullptr, nullptr, nullptr); }

  static void set(const char* rank, const char* world_size, const char* master) {
    set_one("RANK", rank);
    set_one("WORLD_SIZE", world_size);
    set_one("MASTER_ADDR", master);
    set_one("BRAID_JOB", nullptr);
    for (const char* name :
         {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "PMI_RANK", "PMI_SIZE"})
      set_one(name, nullptr);
  }
  static void set_one(const char* name, const char* value) {
    if (value == nullptr) {
      ::unsetenv(name);
    } else {
      ::setenv(name, value, 1);
    }
  }
};

TEST_F(EnvironmentTest, NothingIsAJobOfOne) {
  const auto environment = read_environment().value();
  EXPECT_EQ(environment.rank, 0u);
  EXPECT_EQ(environment.world_size, 1u);
  EXPECT_EQ(environment.job_name, "braid-bench");
}

TEST_F(EnvironmentTest, IsReadFromTheLauncher) {
  set("3", "4", "node-a");
  set_one("BRAID_JOB", "mine");
  const auto environment = read_environment().value();
  EXPECT_EQ(environment.rank, 3u);
  EXPECT_EQ(environment.world_size, 4u);
  EXPECT_EQ(environment.master_address, "node-a");
  EXPECT_EQ(environment.job_name, "mine");
}

TEST_F(EnvironmentTest, MpirunSaysItInItsOwnWords) {
  for (const auto& [rank, size] :
       {std::pair{"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"}, {"PMI_RANK", "PMI_SIZE"}}) {
    set(nullptr, nullptr, nullptr);
    set_one(rank, "1");
    set_one(size, "2");
    EXPECT_EQ(read_environment().status().message().find("MASTER_ADDR is not set"), 0u)
        << "nobody may take it for a job of one";
    set_one("MASTER_ADDR", "node-a");
    EXPECT_EQ(read_environment().value().rank, 1u);
    EXPECT_EQ(read_environment().value().world_size, 2u);
  }
}

TEST_F(EnvironmentTest, HalfOfItNamesTheMissingPart) {
  set("0", nullptr, "node-a");
  EXPECT_EQ(read_environment().status().message().find("WORLD_SIZE is not set"), 0u);
  set("0", "2", nullptr);
  EXPECT_EQ(read_environment().status().message().find("MASTER_ADDR is not set"), 0u);
  set(nullptr, "2", "node-a");
  EXPECT_EQ(read_environment().status().message().find("RANK is not set"), 0u);
}

TEST_F(EnvironmentTest, NumbersThatDoNotFitAreRefused) {
  for (const auto& [rank, world_size] : {std::pair{"2", "2"},
                                         {"0", "0"},
                                         {"-1", "2"},
                                         {"0", "x"},
                                         {"0", "65537"},
                                         {"0", "99999999999"}}) {
    set(rank, world_size, "node-a");
    EXPECT_FALSE(read_environment().is_ok()) << rank << " of " << world_size;
  }
}

}  // namespace
}  // namespace braid::bench
