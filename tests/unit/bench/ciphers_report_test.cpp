// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "bench/ciphers.h"

namespace braid::bench {
namespace {

TEST(CiphersReport, HasRatesInGigabits) {
  // 1 Gbit: a second is 1 Gbit/s.
  const CipherTimes times = {
      .record_bytes = 1024, .bytes = 125'000'000, .seal = 0.5, .open = 0.25, .hmac = 0};
  const auto json = nlohmann::json::parse(ciphers_json(times));
  EXPECT_EQ(json["record_bytes"], 1024);
  EXPECT_EQ(json["seal_gbit_per_second"], 2.0);
  EXPECT_EQ(json["open_gbit_per_second"], 4.0);
  EXPECT_EQ(json["hmac_gbit_per_second"], 0.0);
}

TEST(CiphersReport, RefusesRecordsWithoutBytes) {
  CiphersOptions options;
  options.sizes = {0};
  EXPECT_EQ(run_ciphers(options).code(), StatusCode::InvalidArgument);
}

}  // namespace
}  // namespace braid::bench
