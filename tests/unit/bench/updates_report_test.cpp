// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "bench/updates.h"

namespace braid::bench {
namespace {

const UpdateTimes kUpdateTimes = {.optimizer = "adamw",
                                  .dtype = DataType::BFloat16,
                                  .elements = 100'000'000,
                                  .bytes = 2'800'000'000,
                                  .update = 0.28,
                                  .copy = 0.25};

TEST(UpdatesReport, counts_each_value_once_read_and_once_written) {
  UpdateStep sgd;
  EXPECT_EQ(update_bytes(sgd, DataType::Float32), 2U * (4 + 4));
  EXPECT_EQ(update_bytes(sgd, DataType::BFloat16), 2U * (2 + 4));
  sgd.momentum = 0.9;
  EXPECT_EQ(update_bytes(sgd, DataType::Float64), 2U * (8 + 2 * 8));
  UpdateStep adam;
  adam.optimizer = Optimizer::Adam;
  EXPECT_EQ(update_bytes(adam, DataType::Float16), 2U * (2 + 3 * 4));
}

TEST(UpdatesReport, a_row_has_rates_and_their_ratio) {
  EXPECT_EQ(updates_row(kUpdateTimes),
            "adamw          bfloat16             28    10.00    11.20   0.89");
  EXPECT_NE(updates_heading(400'000'000).find("400000000 bytes of weights"), std::string::npos);
}

TEST(UpdatesReport, json_has_rates_beside_that_of_the_copy) {
  const auto json = nlohmann::json::parse(updates_json(kUpdateTimes));
  EXPECT_EQ(json["optimizer"], "adamw");
  EXPECT_EQ(json["dtype"], "bfloat16");
  EXPECT_EQ(json["bytes"], 2'800'000'000);
  EXPECT_DOUBLE_EQ(json["gb_per_second"], 10.0);
  EXPECT_DOUBLE_EQ(json["memcpy_gb_per_second"], 11.2);
  EXPECT_DOUBLE_EQ(json["of_memcpy"], 0.25 / 0.28);
}

}  // namespace
}  // namespace braid::bench
