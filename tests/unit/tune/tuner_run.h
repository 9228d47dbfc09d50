// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "tests/unit/tune/tuner_surfaces.h"
#include "tune/tuner.h"

namespace braid {

// Runs the steps that the tuner asks for until it has enough; as the daemon would, a turn that is
// hopeless is cut short.
inline void tune(Tuner& tuner, FakeJob& job) {
  while (const auto turn = tuner.next()) {
    std::vector<double> seconds;
    while (seconds.size() < turn->steps) {
      seconds.push_back(job.step(turn->setting));
      if (seconds.back() > turn->hopeless_seconds) break;
    }
    const Status status = tuner.report(turn->setting, seconds);
    ASSERT_TRUE(status) << status.message();
  }
}

inline Tuner make_tuner(const SearchSpace& space, const Setting& defaults,
                        const Tuner::Options& options,
                        std::optional<Tuner::Known> known = std::nullopt) {
  auto tuner = Tuner::create(space, defaults, options, std::move(known));
  EXPECT_TRUE(tuner) << tuner.status().message();
  return std::move(tuner).value();
}

}  // namespace braid
