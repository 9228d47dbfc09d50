// SPDX-License-Identifier: Apache-2.0
// braid_place.h: what the C interface adds to place(), which tests/unit/planner tests.
#include <cstdint>
#include <string>
#include <vector>

#include <braid_place.h>
#include <gtest/gtest.h>

namespace braid {
namespace {

constexpr uint64_t kShape[] = {10, 20};

braid_place_item item(const char* id, double cost) {
  return {sizeof(braid_place_item), id, kShape, 2, cost, 800};
}

class PlaceTest : public ::testing::Test {
 protected:
  int place() {
    return braid_place(&options_, items_.data(), items_.size(), owners_.data(), order_.data(),
                       loads_.data(), &placement_);
  }
  void expect_refused(const std::string& words) {
    EXPECT_EQ(place(), BRAID_ERROR_INVALID_ARGUMENT);
    EXPECT_NE(std::string(braid_error_message()).find(words), std::string::npos)
        << braid_error_message();
  }

  braid_place_options options_{sizeof(braid_place_options), 2, nullptr, 0.5, 0};
  std::vector<braid_place_item> items_ = {item("a", 3), item("b", 0.25), item("c", 2)};
  std::vector<uint32_t> owners_ = std::vector<uint32_t>(3);
  std::vector<uint32_t> order_ = std::vector<uint32_t>(3);
  std::vector<double> loads_ = std::vector<double>(2);
  braid_placement placement_{sizeof(braid_placement), 0, 0, 0, 0};
};

// Everybody computes b: c and a are spread while a and b are computed.
TEST_F(PlaceTest, GivesOwnersOrderAndLoads) {
  ASSERT_EQ(place(), BRAID_OK) << braid_error_message();
  EXPECT_EQ(owners_[0], 0u);
  EXPECT_EQ(owners_[2], 1u);
  EXPECT_EQ(placement_.makespan_seconds, 3.5);
  EXPECT_EQ(placement_.bound_seconds, 3.5);
  EXPECT_EQ(placement_.is_optimal, 1u);
  EXPECT_GE(loads_[0], 3);
  EXPECT_GE(loads_[1], 2);
  EXPECT_EQ(order_[placement_.order_count - 1], 0u);
}

TEST_F(PlaceTest, ListsThatNobodyWantsMayBeNull) {
  EXPECT_EQ(braid_place(&options_, items_.data(), items_.size(), owners_.data(), nullptr, nullptr,
                        &placement_),
            BRAID_OK);
}

TEST_F(PlaceTest, EverybodysItemsAreNotInTheOrder) {
  options_.rule = "lbp";  // all dimensions are below 1,024
  ASSERT_EQ(place(), BRAID_OK) << braid_error_message();
  EXPECT_EQ(owners_, std::vector<uint32_t>(3, BRAID_EVERYBODY));
  EXPECT_EQ(placement_.order_count, 0u);
  EXPECT_EQ(loads_, std::vector<double>(2, 5.25));
}

TEST_F(PlaceTest, WhatIsWrongIsNamed) {
  items_[1].id = nullptr;
  expect_refused("item 1: its id is NULL");
  items_[1] = item("a", 1);
  expect_refused("item 1 'a': its id stands twice");
  items_[1] = item("b", 1);
  items_[1].shape = nullptr;
  expect_refused("item 1 'b': its shape is NULL");
  items_[1].shape = kShape;
  items_[1].dimensions = 1'000'000;
  expect_refused("item 1 'b': its shape has 1000000 dimensions; right are 1 to 8");
  items_[1] = item("b", 1);
  items_[1].struct_size = 0;
  expect_refused("struct_size of braid_place_item is 0");
  items_.clear();
  expect_refused("name 0 items; right are 1 to 100000");
}

TEST_F(PlaceTest, MissingPlacesAreNamed) {
  EXPECT_EQ(braid_place(nullptr, items_.data(), 3, owners_.data(), nullptr, nullptr, &placement_),
            BRAID_ERROR_INVALID_ARGUMENT);
  EXPECT_EQ(braid_place(&options_, items_.data(), 3, nullptr, nullptr, nullptr, &placement_),
            BRAID_ERROR_INVALID_ARGUMENT);
  EXPECT_STREQ(braid_error_message(), "owners is NULL");
  EXPECT_EQ(braid_place(&options_, items_.data(), 3, owners_.data(), nullptr, nullptr, nullptr),
            BRAID_ERROR_INVALID_ARGUMENT);
}

}  // namespace
}  // namespace braid
