// SPDX-License-Identifier: Apache-2.0
#include "base/amount.h"

#include <cstdint>

#include <gtest/gtest.h>

namespace braid {
namespace {

TEST(FormatAmount, TakesTheUnitThatFits) {
  EXPECT_EQ(format_amount(uint64_t{0}), "0 B");
  EXPECT_EQ(format_amount(uint64_t{1023}), "1023 B");
  EXPECT_EQ(format_amount(uint64_t{1024}), "1.0 KiB");
  EXPECT_EQ(format_amount(UINT64_MAX), "16.0 EiB");
  EXPECT_EQ(format_amount(12.5e6), "11.9 MiB");
}

}  // namespace
}  // namespace braid
