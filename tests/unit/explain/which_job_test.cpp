// SPDX-License-Identifier: Apache-2.0
#include "explain/which_job.h"

#include <string>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace braid {
namespace {

std::string said(std::vector<std::string> running, const std::string& given) {
  const auto found = which_job(std::move(running), given);
  return found ? "found " + *found : found.status().message();
}

TEST(WhichJob, IsFoundByItsNameOrTheBeginningOfIt) {
  EXPECT_EQ(said({"train-7", "eval"}, "eval"), "found eval");
  EXPECT_EQ(said({"train-7", "eval"}, "tr"), "found train-7");
  EXPECT_EQ(said({"train", "train-7"}, "train"), "found train");
  EXPECT_EQ(said({"train", "train"}, "tr"), "found train");  // of two users, whom root sees
}

TEST(WhichJob, NeedsNoNameIfItIsTheOnlyOne) {
  EXPECT_EQ(said({"train"}, ""), "found train");
  EXPECT_EQ(said({"b", "a"}, ""), "2 jobs run on this node: say which one with --job: 'a', 'b'");
  EXPECT_EQ(said({}, ""), "no job runs on this node");
}

TEST(WhichJob, ErrorsListTheJobsThatRun) {
  EXPECT_EQ(said({"b", "a"}, "c"), "no job 'c' runs on this node; there are 'a', 'b'");
  EXPECT_EQ(said({"a"}, "c"), "no job 'c' runs on this node; there is 'a'");
  EXPECT_EQ(said({}, "c"), "no job 'c' runs on this node, nor any other one");
  EXPECT_EQ(said({"train-2", "eval", "train-1"}, "train"),
            "'train' is the beginning of 2 jobs on this node: 'train-1', 'train-2'");
  EXPECT_EQ(said({"a\nb"}, "c\n"), "no job 'c\\n' runs on this node; there is 'a\\nb'");
}

TEST(WhichJob, ALongListIsCut) {
  std::vector<std::string> running;
  for (int i = 0; i < 20; ++i) running.push_back(fmt::format("job{:02}", i));
  const std::string list = said(running, "x");
  EXPECT_TRUE(list.ends_with("'job15', and 4 more")) << list;
}

}  // namespace
}  // namespace braid
