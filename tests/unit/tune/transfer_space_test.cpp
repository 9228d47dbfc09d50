// SPDX-License-Identifier: Apache-2.0
#include "tune/transfer_space.h"

#include <gtest/gtest.h>

namespace braid {
namespace {

TransferSpaceOptions options() {
  TransferSpaceOptions result;
  result.defaults = {{"flows_per_link", 1},       {"streams", 1},
                     {"unit_bytes", 8 << 20},     {"chunk_bytes", 65'536},
                     {"window_bytes", 524'288},   {"direct_bytes", 32'768},
                     {"two_hops_bytes", 200'000}, {"halving_bytes", 262'144},
                     {"hierarchical", 2}};
  return result;
}

const std::vector<uint64_t>& values_of(const SearchSpace& space, std::string_view name) {
  for (const auto& parameter : space.parameters()) {
    if (parameter.name == name) return parameter.values;
  }
  throw std::out_of_range("no such parameter");
}

TEST(TransferSpace, HasTheDefaultsAmongWhatIsUsual) {
  auto given = options();
  given.defaults["streams"] = 3;
  given.defaults["flows_per_link"] = 32;  // more than flows_max
  const auto space = make_transfer_space(given).value();
  EXPECT_EQ(values_of(space, "streams"), (std::vector<uint64_t>{1, 2, 3, 4, 8}));
  EXPECT_EQ(values_of(space, "two_hops_bytes"),
            (std::vector<uint64_t>{1, 200'000, 256 << 10, 1 << 20, 4 << 20}));
  EXPECT_EQ(values_of(space, "flows_per_link"), (std::vector<uint64_t>{1, 2, 4, 8, 16, 32}));
  const Setting usual = space.nearest(given.defaults, space.at(0));
  EXPECT_EQ(space.values(usual), given.defaults);
  EXPECT_TRUE(space.allows(usual));
}

TEST(TransferSpace, KeepsToTheLimits) {
  auto given = options();
  given.flows_max = 4;
  given.chunk_bytes_max = 128 << 10;
  const auto space = make_transfer_space(given).value();
  EXPECT_EQ(values_of(space, "flows_per_link").back(), 4u);
  EXPECT_EQ(values_of(space, "chunk_bytes").back(), 128u << 10);
  EXPECT_EQ(values_of(space, "direct_bytes").back(), 128u << 10);
}

TEST(TransferSpace, WhatIsPinnedOrOffStays) {
  auto given = options();
  given.pinned = {"chunk_bytes"};
  given.defaults["direct_bytes"] = 0;
  const auto space = make_transfer_space(given).value();
  EXPECT_EQ(values_of(space, "chunk_bytes"), std::vector<uint64_t>{65'536});
  EXPECT_EQ(values_of(space, "direct_bytes"), std::vector<uint64_t>{1});
  EXPECT_EQ(values_of(space, "hierarchical"), (std::vector<uint64_t>{1, 2}));
  given.defaults["two_hops_bytes"] = 0;
  given.defaults["halving_bytes"] = 0;
  given.defaults["hierarchical"] = 0;
  const auto smaller = make_transfer_space(given).value();
  EXPECT_EQ(values_of(smaller, "two_hops_bytes"), std::vector<uint64_t>{1});
  EXPECT_EQ(values_of(smaller, "halving_bytes"), std::vector<uint64_t>{1});
  EXPECT_EQ(values_of(smaller, "hierarchical"), std::vector<uint64_t>{1});
}

TEST(TransferSpace, AChunkFitsItsWindow) {
  const auto space = make_transfer_space(options()).value();
  NamedValues values = options().defaults;
  values["chunk_bytes"] = 512 << 10;
  values["window_bytes"] = 256 << 10;
  const Setting nearest = space.nearest(values, space.at(0));
  const NamedValues allowed = space.values(nearest);
  EXPECT_LE(allowed.at("chunk_bytes"), allowed.at("window_bytes"));
}

TEST(TransferSpace, AMissingDefaultIsNamed) {
  auto given = options();
  given.defaults.erase("streams");
  const auto space = make_transfer_space(given);
  ASSERT_FALSE(space.is_ok());
  EXPECT_EQ(space.status().message(), "parameter 'streams': has no default");
  EXPECT_FALSE(is_transfer_parameter("stream"));
  EXPECT_TRUE(is_transfer_parameter("streams"));
}

}  // namespace
}  // namespace braid
