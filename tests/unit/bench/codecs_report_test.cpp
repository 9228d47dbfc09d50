// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "bench/codecs.h"

namespace braid::bench {
namespace {

// 1 GB: a second is 1 GB/s.
const CodecTimes kTimes = {.codec = "dgc",
                           .bytes = 1'000'000'000,
                           .encoded_bytes = 2'000'000,
                           .encode = 0,
                           .encode_with_memory = 0.5,
                           .decode = 0.25,
                           .decode_and_add = 0.125};
const MemoryTimes kMemory = {.copy = 0.1, .add = 0.25};

TEST(CodecsReport, json_has_rates_beside_those_of_memory) {
  const auto json = nlohmann::json::parse(codecs_json(kTimes, kMemory));
  EXPECT_EQ(json["codec"], "dgc");
  EXPECT_EQ(json["encoded_bytes"], 2'000'000);
  EXPECT_EQ(json["memcpy_gb_per_second"], 10.0);
  EXPECT_EQ(json["encode"]["gb_per_second"], 0.0);
  EXPECT_EQ(json["encode_with_memory"]["gb_per_second"], 2.0);
  EXPECT_EQ(json["encode_with_memory"]["of_memcpy"], 0.2);
  EXPECT_EQ(json["decode"]["of_add"], 1.0);
  EXPECT_EQ(json["decode_and_add"]["gb_per_second"], 8.0);
}

}  // namespace
}  // namespace braid::bench
