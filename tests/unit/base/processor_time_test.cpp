// SPDX-License-Identifier: Apache-2.0
#include "base/processor_time.h"

#include <ctime>

#include <gtest/gtest.h>

namespace braid {
namespace {

TEST(ProcessorTime, GrowsWithWhatIsComputed) {
  const ProcessorTime before = processor_time();
  if (before.ran_ns == 0) GTEST_SKIP() << "this kernel does not say";
  const std::clock_t begun = std::clock();
  while (std::clock() - begun < CLOCKS_PER_SEC / 20) {
  }
  const ProcessorTime after = processor_time();
  EXPECT_GT(after.ran_ns, before.ran_ns);
  EXPECT_GE(after.waited_ns, before.waited_ns);
}

}  // namespace
}  // namespace braid
