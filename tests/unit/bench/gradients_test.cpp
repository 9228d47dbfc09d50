// SPDX-License-Identifier: Apache-2.0
#include "bench/gradients.h"

#include <gtest/gtest.h>

#include "bench/cost_sweep.h"

namespace braid::bench {
namespace {

Trace mixed() {
  Trace trace;
  trace.tensors = {{"first", 3, DataType::Float32, 1},
                   {"second", 5, DataType::Float32, 1},
                   {"third", 7, DataType::Float16, 1}};
  return trace;
}

TEST(Gradients, LieInTheOrderOfBackwardWithoutGapsInADtype) {
  const auto gradients = Gradients::create(mixed(), 0, 2).value();
  const auto& tensors = gradients.tensors();
  ASSERT_EQ(tensors.size(), 3u);
  EXPECT_EQ(tensors[0].name, "third");
  EXPECT_EQ(tensors[1].offset, 64u);
  EXPECT_EQ(tensors[2].offset, 64u + 5 * 4);
  EXPECT_EQ(gradients.bytes(), 64u + 8 * 4);
}

TEST(Gradients, NoticeAWrongSum) {
  const auto alone = Gradients::create(mixed(), 0, 1);  // its own values are the sums
  std::vector<uint8_t> memory(alone->bytes());
  alone->fill(4, memory.data());
  const auto& tensors = alone->tensors();
  for (size_t i = 0; i < tensors.size(); ++i)
    EXPECT_FALSE(alone->verify(i, 4, &memory[tensors[i].offset]));
  EXPECT_TRUE(alone->verify(1, 5, &memory[tensors[1].offset]));
  memory[tensors[2].offset + 4] ^= 1;
  EXPECT_EQ(alone->verify(2, 4, &memory[tensors[2].offset])->index, 1u);
}

TEST(Gradients, RefuseSumsThatTheirDtypeDoesNotHold) {
  Trace trace = mixed();
  trace.tensors[0].dtype = DataType::Uint8;
  EXPECT_FALSE(Gradients::create(trace, 0, 300).is_ok());
}

TEST(Gradients, OfACodecHaveNoKnownSums) {
  Trace trace = mixed();
  EXPECT_NE(Gradients::create_normal(trace, 0).status().message().find(
                "'third' is float16; codecs encode float32 alone"),
            std::string::npos);
  trace.tensors.pop_back();
  const auto one = Gradients::create_normal(trace, 0);
  const auto other = Gradients::create_normal(trace, 1);
  ASSERT_TRUE(one.is_ok() && other.is_ok());
  EXPECT_FALSE(one->has_known_sums());
  const auto filled = [](const Gradients& gradients, uint64_t step) {
    std::vector<uint8_t> memory(gradients.bytes());
    gradients.fill(step, memory.data());
    return memory;
  };
  EXPECT_EQ(filled(*one, 3), filled(*one, 3));
  EXPECT_NE(filled(*one, 3), filled(*one, 4));
  EXPECT_NE(filled(*one, 3), filled(*other, 3));
}

TEST(Executable, PartsGroupsWhereTheDtypeChanges) {
  const auto gradients = Gradients::create(mixed(), 0, 2);
  EXPECT_EQ(executable({{{0, 3, 4}}}, *gradients), (Plan{{{0, 1, 1}, {1, 3, 1}}}));
}

TEST(EncodedPlans, AreDecodedAsTheyWere) {
  const Plan plan{{{0, 2, 1}, {2, 3, 1}, {3, 7, 1}}};
  EXPECT_EQ(decode(encode(plan, 7)), plan);
  EXPECT_EQ(decode({1, 1, 1}), (Plan{{{0, 1, 1}, {1, 2, 1}, {2, 3, 1}}}));
}

TEST(CostSweep, HasSizesUpToTheLargest) {
  EXPECT_EQ(CostSweep::sizes(5000, 4), (std::vector<uint64_t>{1024, 2048, 4096, 5000}));
  EXPECT_EQ(CostSweep::sizes(5001, 4).back(), 5000u);
  EXPECT_GE(CostSweep::sizes(16, 4).size(), 2u);
}

}  // namespace
}  // namespace braid::bench
