// SPDX-License-Identifier: Apache-2.0
#include "job/tensor_table.h"

#include <gtest/gtest.h>

#include "base/errors_testing.h"
#include "job/test_trainer.h"

namespace braid {
namespace {

using testing::is_error;
using testing::names;

const JobHash kJob(9);

using Description = testing::TestTrainer::Described;

Result<uint32_t> add(TensorTable& table, const std::vector<Description>& descriptions,
                     const JobHash& job = kJob, const CodecKinds& allowed = CodecKinds().set()) {
  auto registered = testing::read_registration(descriptions, job, allowed);
  if (!registered) return registered.status();
  for (const Tensor& tensor : registered->tensors) BRAID_RETURN_IF_ERROR(table.check(tensor));
  const uint32_t first = table.begin(registered->tensors.size());
  for (Tensor& tensor : registered->tensors) table.add(std::move(tensor));
  return first;
}

TEST(TensorTableTest, HandlesCountUp) {
  TensorTable table;
  const auto first = add(table, {{"a", 0, 10}, {"b", 3, 20}});
  ASSERT_TRUE(first.is_ok());
  EXPECT_EQ(*first, 0u);
  const auto second = add(table, {{"c", 6, 0, true}});
  ASSERT_TRUE(second.is_ok());
  EXPECT_EQ(*second, 2u);
  ASSERT_NE(table.find(1), nullptr);
  EXPECT_EQ(*table.find(1)->name, "b");
  EXPECT_EQ(table.find(1)->dtype, DataType::BFloat16);
  EXPECT_EQ(table.find(1)->count, 20u);
  EXPECT_EQ(table.find(1)->backward_order, 3u);
  EXPECT_FALSE(table.find(1)->is_dynamic);
  EXPECT_TRUE(table.find(2)->is_dynamic);
  EXPECT_EQ(table.find(3), nullptr);
}

TEST(TensorTableTest, FindsTensorsByTheHashOfTheirName) {
  TensorTable table;
  ASSERT_TRUE(add(table, {{"a"}, {"b"}}).is_ok());
  ASSERT_NE(table.find_hash(kJob.of_name("b")), nullptr);
  EXPECT_EQ(*table.find_hash(kJob.of_name("b"))->name, "b");
  EXPECT_EQ(table.find_hash(kJob.of_name("c")), nullptr);
}

TEST(TensorTableTest, HasTheCodecsThatAreAllowed) {
  CodecKinds allowed;
  allowed.set(static_cast<size_t>(CodecKind::Int8));
  TensorTable table;
  const auto with_codec = [&](const char* name, const char* codec) {
    return add(table, {{name, 0, 10, false, true, 3, codec}}, kJob, allowed);
  };
  EXPECT_TRUE(with_codec("a", "int8:block=64"));
  EXPECT_TRUE(with_codec("b", "none"));
  const auto refused = with_codec("c", "int4");
  EXPECT_TRUE(
      is_error(refused, StatusCode::PermissionDenied, {"'c'", "codec int4", "debug.codecs"}));
  TensorTable everything;
  EXPECT_TRUE(add(everything, {{"c", 0, 10, false, true, 3, "int4"}}));
}

TEST(TensorTableTest, ARegistrationHasSoManyCodecsAtMost) {
  std::vector<std::string> codecs;
  for (size_t i = 0; i <= RegisteredTensors::kCodecsMax; ++i)
    codecs.push_back(fmt::format("int8:block={}", 16 * (i + 2)));
  std::vector<Description> tensors;
  for (const std::string& codec : codecs)
    tensors.push_back({"t" + codec, 0, 10, false, true, 3, codec.c_str()});
  TensorTable table;
  const auto refused = add(table, tensors);
  EXPECT_TRUE(
      is_error(refused, StatusCode::InvalidArgument, {"'tint8:block=1056'", "64 different"}));
  tensors.pop_back();
  tensors.push_back({"again", 0, 10, false, true, 3, codecs[0].c_str()});
  EXPECT_TRUE(add(table, tensors));
}

TEST(TensorTableTest, WeightsHaveSlots) {
  TensorTable table;
  ASSERT_TRUE(add(table, {{"a", 0, 10, false, true, 3, nullptr, 2},
                          {"b", 3, 10, false, true, 3, nullptr, 2},
                          {"c", 5, 10}}));
  EXPECT_EQ(table.find(0)->state_slots, 2u);
  EXPECT_EQ(table.find(2)->state_slots, 0u);
  TensorTable other;
  ASSERT_TRUE(add(other, {{"a", 0, 10, false, true, 3, nullptr, 3},
                          {"b", 3, 10, false, true, 3, nullptr, 3},
                          {"c", 5, 10}}));
  EXPECT_NE(other.find(0)->plan_set, table.find(0)->plan_set) << "it is another set";
}

TEST(TensorTableTest, SlotsThatCannotBeAreNamed) {
  const auto refused = [](const std::vector<Description>& descriptions) {
    TensorTable table;
    const auto added = add(table, descriptions);
    EXPECT_EQ(added.status().code(), StatusCode::InvalidArgument);
    EXPECT_EQ(table.find(0), nullptr);
    return added.status().message();
  };
  EXPECT_EQ(refused({{"w", 0, 10, false, true, 3, nullptr, 4}}),
            "tensor 'w' has 4 state slots; 0 to 3 are possible");
  EXPECT_EQ(refused({{"w", 0, 10, false, false, 3, nullptr, 1}}),
            "tensor 'w' has state slots and is not planned; only planned tensors, a model's "
            "weights, can have them");
  EXPECT_EQ(refused({{"w", 4, 10, false, true, 3, nullptr, 1}}),
            "tensor 'w' has state slots and is of int32; optimizers are for floats");
  EXPECT_EQ(
      refused({{"v", 0, 10, false, true, 3, nullptr, 2}, {"w", 0, 10, false, true, 3, nullptr, 1}}),
      "tensor 'w' (float32, 1 state slots) is registered with 'v' (float32, 2): planned "
      "tensors of one registration have as many slots, and float64 has state of its own; "
      "register them apart");
  EXPECT_NE(
      refused({{"v", 0, 10, false, true, 3, nullptr, 2}, {"w", 1, 10, false, true, 3, nullptr, 2}})
          .find("'w' (float64, 2 state slots)"),
      std::string::npos);
}

TEST(TensorTableTest, ATensorBeyondTheLimitIsNamed) {
  TensorTable table;
  for (const bool planned : {false, true}) {
    for (const uint64_t count : {kTensorBytesMax / 4 + 1, uint64_t{1} << 62, UINT64_MAX}) {
      const auto refused = add(table, {{"small", 0, 4}, {"w", 0, count, false, planned}});
      EXPECT_EQ(refused.status().code(), StatusCode::InvalidArgument);
      EXPECT_EQ(refused.status().message(),
                fmt::format("tensor 'w' has {} elements of float32; a tensor has 281474976710656 "
                            "bytes at most",
                            count));
    }
  }
  EXPECT_EQ(table.find(0), nullptr);
  EXPECT_TRUE(add(table, {{"w", 0, kTensorBytesMax / 4, false, true}}));
  EXPECT_TRUE(add(table, {{"stream", 0, UINT64_MAX, true}})) << "its operations have counts";
}

TEST(TensorTableTest, ASetBeyondTheLimitIsNamed) {
  TensorTable table;
  const uint64_t most = kTensorBytesMax / 4;
  const auto refused = add(
      table, {{"a", 0, most - 1, false, true}, {"b", 0, 1, false, true}, {"c", 0, 1, false, true}});
  EXPECT_TRUE(is_error(refused, StatusCode::InvalidArgument,
                       {"'c'", "1 elements", "281474976710660 bytes", "281474976710656"}));
  EXPECT_TRUE(add(table, {{"a", 0, most - 1, false, true}, {"b", 0, 1, false, true}}));
  EXPECT_TRUE(add(table, {{"c", 0, most, false, true}, {"d", 0, most, false, false}}))
      << "another set, and a tensor of none";
}

TEST(TensorTableTest, RegistersAllOrNone) {
  TensorTable table;
  ASSERT_TRUE(add(table, {{"a"}}).is_ok());
  const auto refused = add(table, {{"b"}, {"a"}});
  ASSERT_FALSE(refused.is_ok());
  EXPECT_TRUE(is_error(refused, StatusCode::AlreadyExists, {"tensor 'a'"}));
  EXPECT_EQ(table.find(1), nullptr);
  EXPECT_EQ(table.find_hash(kJob.of_name("b")), nullptr);
  const auto again = add(table, {{"b"}});
  ASSERT_TRUE(again.is_ok());
  EXPECT_EQ(*again, 1u);
}

TEST(TensorTableTest, RefusesANameTwiceInOneMessage) {
  TensorTable table;
  const auto refused = add(table, {{"x"}, {"x"}});
  ASSERT_FALSE(refused.is_ok());
  EXPECT_EQ(refused.status().code(), StatusCode::AlreadyExists);
  EXPECT_EQ(table.find(0), nullptr);
}

TEST(TensorTableTest, RefusesNamesThatAreEmptyOrTooLong) {
  TensorTable table;
  EXPECT_EQ(add(table, {{""}}).status().code(), StatusCode::InvalidArgument);
  EXPECT_EQ(add(table, {{std::string(RegisteredTensors::kNameBytesMax + 1, 'x')}}).status().code(),
            StatusCode::InvalidArgument);
  EXPECT_TRUE(add(table, {{std::string(RegisteredTensors::kNameBytesMax, 'x')}}).is_ok());
}

TEST(TensorTableTest, RefusesADtypeThatIsNone) {
  TensorTable table;
  const auto refused = add(table, {{"w", kDataTypeCount}});
  ASSERT_FALSE(refused.is_ok());
  EXPECT_EQ(refused.status().message(), "tensor 'w': no such dtype: 7");
}

TEST(TensorTableTest, PlannedTensorsOfOneRegistrationAreASet) {
  TensorTable table;
  ASSERT_TRUE(add(table, {{"a", 0, 1, false, true}, {"b"}, {"c", 0, 1, false, true}}).is_ok());
  ASSERT_TRUE(add(table, {{"d", 0, 1, false, true}}).is_ok());
  EXPECT_NE(table.find(0)->plan_set, 0u);
  EXPECT_EQ(table.find(1)->plan_set, 0u);
  EXPECT_EQ(table.find(2)->plan_set, table.find(0)->plan_set);
  EXPECT_NE(table.find(3)->plan_set, table.find(0)->plan_set);
}

TEST(TensorTableTest, ASetsNameIsThatOfAllItsTensors) {
  const auto set_of = [](const std::vector<Description>& descriptions) {
    TensorTable table;
    EXPECT_TRUE(add(table, descriptions).is_ok());
    return table.find(0)->plan_set;
  };
  const Description a{"a", 0, 10, false, true, 4}, b{"b", 0, 10, false, true, 5};
  const uint64_t set = set_of({a, b});
  EXPECT_EQ(set, set_of({a, b}));
  EXPECT_EQ(set, set_of({a, b, {"not planned"}}));
  EXPECT_NE(set, set_of({b, a}));
  EXPECT_NE(set, set_of({a}));
  EXPECT_NE(set, set_of({a, {"c", 0, 10, false, true, 5}}));
  EXPECT_NE(set, set_of({a, {"b", 0, 11, false, true, 5}}));
  EXPECT_NE(set, set_of({a, {"b", 1, 10, false, true, 5}}));
  EXPECT_NE(set, set_of({a, {"b", 0, 10, false, true, 6}}));
  // Nor do two differences make up for each other.
  EXPECT_NE(set, set_of({a, {"b", 1, 10, false, true, 4}}));
}

// What other jobs' trainers have learned of hashes helps nobody.
TEST(TensorTableTest, EachJobHasHashesOfItsOwn) {
  TensorTable here, there;
  ASSERT_TRUE(add(here, {{"a", 0, 1, false, true}}).is_ok());
  ASSERT_TRUE(add(there, {{"a", 0, 1, false, true}}, JobHash(10)).is_ok());
  EXPECT_NE(here.find(0)->hash, there.find(0)->hash);
  EXPECT_NE(here.find(0)->plan_set, there.find(0)->plan_set);
}

TEST(TensorTableTest, ADynamicTensorCannotBePlanned) {
  TensorTable table;
  const auto refused = add(table, {{"w", 0, 1, true, true}});
  ASSERT_FALSE(refused.is_ok());
  EXPECT_TRUE(is_error(refused, StatusCode::InvalidArgument, {"'w'"}));
}

class TakenTensorsTest : public ::testing::Test {
 protected:
  // 'a' and 'b' are 0 and 1, 'c' is 2.
  TakenTensorsTest() {
    EXPECT_TRUE(add(table_, {{"a"}, {"b"}}));
    EXPECT_TRUE(add(table_, {{"c"}}));
  }
  // As a trainer's UnregisterTensors does it.
  void take_all(uint32_t first, uint32_t count) {
    const auto taken = table_.take(first, count);
    ASSERT_TRUE(taken) << taken.status().message();
    for (const Tensor& tensor : taken->tensors) table_.end(tensor);
  }
  std::string refusal(uint32_t first, uint32_t count) {
    const auto taken = table_.take(first, count);
    return taken ? "" : taken.status().message();
  }

  TensorTable table_;
};

TEST_F(TakenTensorsTest, AreNotThereAnyMore) {
  take_all(0, 2);
  EXPECT_EQ(table_.find(0), nullptr);
  EXPECT_EQ(table_.find(1), nullptr);
  EXPECT_EQ(table_.find_hash(kJob.of_name("a")), nullptr);
  EXPECT_EQ(*table_.find(2)->name, "c");
  EXPECT_NE(table_.find_hash(kJob.of_name("c")), nullptr);
}

TEST_F(TakenTensorsTest, GoWithAllOfTheirRegistration) {
  EXPECT_TRUE(names(refusal(0, 1), {"1 tensors", "0", "tensor 0", "2", "0"}));
  EXPECT_TRUE(names(refusal(1, 1), {"1 tensors", "1", "tensor 1", "2", "0"}));
  EXPECT_FALSE(refusal(0, 3).empty());
  EXPECT_FALSE(refusal(0, 0).empty());
  EXPECT_FALSE(refusal(2, UINT32_MAX).empty());
  EXPECT_EQ(*table_.find(0)->name, "a");
  take_all(0, 2);
}

TEST_F(TakenTensorsTest, AreTakenOnce) {
  EXPECT_EQ(refusal(3, 1), "tensor 3 is not registered");
  take_all(0, 2);
  EXPECT_EQ(refusal(0, 2), "tensor 0 is not registered");
}

TEST_F(TakenTensorsTest, HaveNoOperations) {
  table_.hold(1);
  table_.hold(0);
  table_.let_go(1);
  EXPECT_TRUE(names(refusal(0, 2), {"'a'", "1"}));
  table_.hold(2);
  table_.let_go(0);
  take_all(0, 2);
}

TEST_F(TakenTensorsTest, LeaveHandlesThatAreNotGivenAgain) {
  take_all(2, 1);
  const auto next = add(table_, {{"d"}});
  ASSERT_TRUE(next);
  EXPECT_EQ(*next, 3u);
}

TEST_F(TakenTensorsTest, LeaveRoom) {
  EXPECT_TRUE(
      names(table_.check_room(TensorTable::kTensorsMax - 2).message(), {"1048576 tensors"}));
  take_all(0, 2);
  EXPECT_TRUE(table_.check_room(TensorTable::kTensorsMax - 1));
  EXPECT_FALSE(table_.check_room(TensorTable::kTensorsMax));
}

TEST_F(TakenTensorsTest, HaveNamesThatMayNotComeAgainForAWhile) {
  take_all(0, 2);
  EXPECT_TRUE(names(add(table_, {{"b"}}).status().message(), {"'b'"}));
  for (size_t i = 0; i < EndedTensors::kKept; ++i) {
    const auto next = add(table_, {{"next" + std::to_string(i)}});
    ASSERT_TRUE(next);
    take_all(*next, 1);
  }
  EXPECT_TRUE(add(table_, {{"b"}}));
}

}  // namespace
}  // namespace braid
