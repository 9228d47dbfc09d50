// SPDX-License-Identifier: Apache-2.0
#include "update/shard_state.h"

#include <random>
#include <set>
#include <vector>

#include <gtest/gtest.h>

namespace braid::test {
namespace {

// Counted element by element, as FixedOwners says it.
void expect_shares(uint64_t elements, uint64_t stripe_elements, uint32_t nodes) {
  std::vector<ShardLayout> layouts;
  for (uint32_t place = 0; place < nodes; ++place) {
    layouts.push_back({elements, stripe_elements, nodes, place});
  }
  std::vector<uint64_t> next(nodes);
  for (uint64_t element = 0; element < elements; ++element) {
    const uint64_t owner = element / stripe_elements % nodes;
    ASSERT_EQ(layouts[owner].index_of(element), next[owner]++) << "element " << element;
  }
  for (uint32_t place = 0; place < nodes; ++place) {
    ASSERT_EQ(layouts[place].owned_elements(), next[place]) << "node " << place;
  }
}

TEST(ShardLayout, gives_each_element_one_owner_and_one_place_there) {
  std::mt19937_64 random(1);
  for (int i = 0; i < 300; ++i) {
    const uint64_t elements = random() % 3000;
    const uint64_t stripe_elements = 1 + random() % (i % 2 == 0 ? 20 : 2000);
    const auto nodes = static_cast<uint32_t>(1 + random() % 9);
    SCOPED_TRACE(
        fmt::format("{} elements, {} a stripe, {} nodes", elements, stripe_elements, nodes));
    expect_shares(elements, stripe_elements, nodes);
    if (HasFailure()) return;
  }
}

TEST(ShardLayout, of_a_huge_set_does_not_overflow) {
  constexpr uint64_t kElements = uint64_t{1} << 55;
  const ShardLayout last{kElements, 65'536, 8, 7};
  EXPECT_EQ(last.owned_elements(), kElements / 8);
  EXPECT_EQ(last.index_of(kElements - 1), kElements / 8 - 1);
}

TEST(ShardLayoutDeathTest, has_no_place_for_what_others_own) {
  const ShardLayout layout{100, 16, 2, 1};
  EXPECT_EQ(layout.index_of(16), 0U);
  EXPECT_DEATH((void)layout.index_of(15), "another owner");
  EXPECT_DEATH((void)layout.index_of(32), "another owner");
  EXPECT_DEATH((void)layout.index_of(112), "another owner") << "behind the last element";
}

TEST(Stripes, are_multiples_of_16_elements_within_bounds) {
  for (const uint64_t elements :
       {0ULL, 1ULL, 8'191ULL, 8'192ULL, 100'001ULL, 25'557'032ULL, 7'000'000'000ULL, 1ULL << 55}) {
    for (const uint32_t nodes : {1U, 2U, 3U, 8U, 1000U}) {
      const uint64_t stripe = stripe_elements_of(elements, nodes);
      EXPECT_EQ(stripe % 16, 0U);
      EXPECT_GE(stripe, 256U);
      EXPECT_LE(stripe, 262'144U);
    }
  }
}

TEST(Stripes, are_a_sixteenth_of_a_nodes_part) {
  EXPECT_EQ(stripe_elements_of(16 * 4 * 1024, 4), 1024U);
  EXPECT_EQ(stripe_elements_of(16 * 4 * 1024 + 1, 4), 1040U);
  EXPECT_EQ(stripe_elements_of(1000, 4), 256U);
  EXPECT_EQ(stripe_elements_of(1'000'000'000, 4), 262'144U);
}

TEST(ShardState, begins_with_zeros_and_keeps_what_is_written) {
  const ShardLayout layout{1000, 48, 3, 1};
  const auto state = *ShardState::create(layout, 3, DataType::BFloat16);
  EXPECT_EQ(state->slots(), 3U);
  EXPECT_FALSE(state->is_float64());
  std::set<const float*> places;
  for (const StateSlot slot : {StateSlot::Weights, StateSlot::First, StateSlot::Second}) {
    for (uint64_t element = 0; element < layout.elements; ++element) {
      if (element / 48 % 3 != 1) continue;
      float* const value = state->values<float>(slot, element, 1).data();
      ASSERT_EQ(*value, 0.0f);
      *value = 1.0f;
      places.insert(value);
    }
  }
  EXPECT_EQ(places.size(), 3 * layout.owned_elements());
}

TEST(ShardState, of_a_stripe_lies_in_one_piece) {
  const auto state = *ShardState::create({1000, 48, 3, 1}, 2, DataType::Float64);
  EXPECT_TRUE(state->is_float64());
  const auto all = state->values<double>(StateSlot::First, 3 * 48 + 48, 48);
  ASSERT_EQ(all.size(), 48U);
  for (uint64_t i = 0; i < 48; ++i) {
    EXPECT_EQ(state->values<double>(StateSlot::First, 3 * 48 + 48 + i, 1).data(), &all[i]);
  }
}

TEST(ShardState, takes_four_or_eight_bytes_a_value) {
  const ShardLayout layout{1000, 48, 3, 2};
  EXPECT_EQ(ShardState::bytes_of(layout, 3, DataType::Float32), layout.owned_elements() * 12);
  EXPECT_EQ(ShardState::bytes_of(layout, 3, DataType::Float16), layout.owned_elements() * 12);
  EXPECT_EQ(ShardState::bytes_of(layout, 2, DataType::Float64), layout.owned_elements() * 16);
}

TEST(ShardState, of_a_node_that_owns_nothing_is_there) {
  const auto state = ShardState::create({10, 16, 4, 3}, 1, DataType::Float32);
  ASSERT_TRUE(state.status()) << state.status().to_string();
  EXPECT_EQ((*state)->layout().owned_elements(), 0U);
}

TEST(ShardState, that_no_address_space_holds_is_refused) {
  const ShardLayout layout{uint64_t{1} << 62, 65'536, 1, 0};
  EXPECT_EQ(ShardState::bytes_of(layout, 3, DataType::Float64), std::nullopt);
  const auto state = ShardState::create(layout, 3, DataType::Float64);
  EXPECT_EQ(state.status().code(), StatusCode::ResourceExhausted);
  EXPECT_NE(state.status().message().find("24 bytes for each of 4611686018427387904 elements"),
            std::string::npos)
      << state.status().message();
}

TEST(ShardState, is_of_one_step_at_a_time) {
  const auto state = *ShardState::create({10, 16, 1, 0}, 1, DataType::Float32);
  EXPECT_TRUE(state->may_begin(5));
  state->begin(5);
  state->begin(5);
  EXPECT_TRUE(state->may_begin(5));
  EXPECT_FALSE(state->may_begin(6));
  state->end();
  EXPECT_FALSE(state->may_begin(6));
  state->end();
  EXPECT_TRUE(state->may_begin(6));
}

TEST(ShardStateDeathTest, gives_nothing_that_lies_behind_its_stripe_or_its_set) {
  const auto state = *ShardState::create({1000, 48, 1, 0}, 1, DataType::Float32);
  EXPECT_EQ(state->values<float>(StateSlot::Weights, 960, 40).size(), 40U);
  EXPECT_DEATH((void)state->values<float>(StateSlot::Weights, 960, 41), "one stripe of the set");
  EXPECT_DEATH((void)state->values<float>(StateSlot::Weights, 0, 49), "one stripe of the set");
  EXPECT_DEATH((void)state->values<float>(StateSlot::Weights, 900, UINT64_MAX - 800),
               "one stripe of the set");
  EXPECT_DEATH((void)state->values<float>(StateSlot::First, 0, 1), "has this slot");
  EXPECT_DEATH((void)state->values<double>(StateSlot::Weights, 0, 1), "of this type");
}

TEST(ShardStateDeathTest, does_not_take_two_steps_at_once) {
  const auto state = *ShardState::create({10, 16, 1, 0}, 1, DataType::Float32);
  EXPECT_DEATH(state->end(), "more operations are done");
  state->begin(5);
  EXPECT_DEATH(state->begin(6), "another step");
}

}  // namespace
}  // namespace braid::test
