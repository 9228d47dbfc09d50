// SPDX-License-Identifier: Apache-2.0
// What the tuner does with a setting that an earlier job ended with.
#include <gtest/gtest.h>

#include "tests/unit/tune/tuner_run.h"

namespace braid {
namespace {

Setting good_setting(const SearchSpace& space) {
  return setting_of(space, {{"flows_per_link", 8},
                            {"streams", 4},
                            {"unit_bytes", 4 << 20},
                            {"chunk_bytes", 512 << 10},
                            {"window_bytes", 2 << 20}});
}

double gain_of(const FakeJob& job, const Setting& defaults, const Setting& setting) {
  return job.true_seconds(defaults) / job.true_seconds(setting);
}

TEST(TunerKnown, TheSameJobsSettingHoldsAtOnceAndIsCheckedInThreeSteps) {
  const SearchSpace space = transport_space();
  const Setting defaults = setting_of(space, {});
  for (uint64_t seed = 0; seed < 50; ++seed) {
    FakeJob job(space, network_surface({}), {}, seed);
    const double gain = gain_of(job, defaults, good_setting(space));
    Tuner tuner = make_tuner(space, defaults, {},
                             Tuner::Known{good_setting(space), gain, KnownFrom::SameJob});
    EXPECT_EQ(tuner.winner(), good_setting(space));
    EXPECT_EQ(tuner.next()->setting, good_setting(space));
    EXPECT_EQ(tuner.next()->purpose, TrialPurpose::Check);
    tune(tuner, job);
    EXPECT_EQ(job.steps(), 3u);
    EXPECT_EQ(tuner.winner(), good_setting(space));
    EXPECT_EQ(tuner.gain(), gain);
  }
}

TEST(TunerKnown, WhereTheDefaultsWereBestThereIsNothingToMeasure) {
  const SearchSpace space = transport_space();
  const Setting defaults = setting_of(space, {});
  Tuner tuner = make_tuner(space, defaults, {}, Tuner::Known{defaults, 1, KnownFrom::SameJob});
  EXPECT_TRUE(tuner.is_done());
  EXPECT_FALSE(tuner.next());
}

TEST(TunerKnown, WhatDoesNotHoldAnyMoreIsSearchedAnew) {
  const SearchSpace space = transport_space();
  const Setting good = good_setting(space);
  const Setting bad = setting_of(space, {});
  for (uint64_t seed = 0; seed < 50; ++seed) {
    FakeJob job(space, bowl_surface(space, good), {}, seed);
    Tuner tuner =
        make_tuner(space, good, {.seed = seed}, Tuner::Known{bad, 1.5, KnownFrom::SameJob});
    tune(tuner, job);
    EXPECT_EQ(tuner.trials()[3].purpose, TrialPurpose::Duel);
    EXPECT_GT(job.steps(), 20u);
    EXPECT_LE(job.true_seconds(tuner.winner()), job.true_seconds(good) * 1.05);
  }
}

TEST(TunerKnown, WhatGainsLessThanItDidMayStillWinADuel) {
  const SearchSpace space = transport_space();
  const Setting defaults = setting_of(space, {});
  int kept = 0;
  for (uint64_t seed = 0; seed < 50; ++seed) {
    FakeJob job(space, network_surface({}), {}, seed);
    Tuner tuner = make_tuner(space, defaults, {},
                             Tuner::Known{good_setting(space), 1000, KnownFrom::SameJob});
    tune(tuner, job);
    kept += tuner.winner() == good_setting(space);
    EXPECT_EQ(tuner.trials()[3].purpose, TrialPurpose::Duel);
  }
  EXPECT_EQ(kept, 50);
}

TEST(TunerKnown, AnotherJobsSettingIsTheFirstProbe) {
  const SearchSpace space = transport_space();
  const Setting defaults = setting_of(space, {});
  Tuner tuner =
      make_tuner(space, defaults, {}, Tuner::Known{good_setting(space), 2, KnownFrom::AlikeJob});
  EXPECT_EQ(tuner.winner(), defaults);
  const std::vector<double> seconds = {1, 1, 1};
  ASSERT_TRUE(tuner.next());
  ASSERT_TRUE(tuner.report(defaults, seconds));
  const auto probe = tuner.next();
  ASSERT_TRUE(probe);
  EXPECT_EQ(probe->setting, good_setting(space));
  EXPECT_EQ(probe->purpose, TrialPurpose::Probe);
  EXPECT_EQ(probe->searcher, "knowledge");
}

// After the network has changed: what holds is the incumbent, what is configured must be beaten.
TEST(TunerKnown, WhatHoldsInThisRunIsTheIncumbentAndTheDefaultsAreProbed) {
  const SearchSpace space = transport_space();
  const Setting defaults = setting_of(space, {});
  const Tuner::Known holding{good_setting(space), 1, KnownFrom::ThisRun};
  for (uint64_t seed = 0; seed < 50; ++seed) {
    FakeJob job(space, network_surface({}), {}, seed);
    Tuner tuner = make_tuner(space, defaults, {.seed = seed}, holding);
    EXPECT_EQ(tuner.winner(), good_setting(space));
    EXPECT_EQ(tuner.next()->setting, good_setting(space));
    EXPECT_EQ(tuner.next()->purpose, TrialPurpose::Baseline);
    tune(tuner, job);
    EXPECT_EQ(tuner.trials()[1].setting, defaults);
    EXPECT_LE(job.true_seconds(tuner.winner()), job.true_seconds(good_setting(space)) * 1.1);
  }
}

TEST(TunerKnown, WhatHoldsInThisRunGoesWhereTheDefaultsHaveBecomeBetter) {
  const SearchSpace space = transport_space();
  const Setting holding = setting_of(space, {});
  const Setting defaults = good_setting(space);
  for (uint64_t seed = 0; seed < 50; ++seed) {
    FakeJob job(space, bowl_surface(space, defaults), {}, seed);
    Tuner tuner =
        make_tuner(space, defaults, {.seed = seed}, Tuner::Known{holding, 1, KnownFrom::ThisRun});
    tune(tuner, job);
    EXPECT_LE(job.true_seconds(tuner.winner()), job.true_seconds(defaults) * 1.05);
  }
}

TEST(TunerKnown, AKnownSettingMustBeOne) {
  const SearchSpace space = transport_space();
  const Setting defaults = setting_of(space, {});
  EXPECT_FALSE(
      Tuner::create(space, defaults, {}, Tuner::Known{Setting{{0}}, 1, KnownFrom::SameJob}));
  EXPECT_FALSE(Tuner::create(space, defaults, {}, Tuner::Known{defaults, 0, KnownFrom::SameJob}));
}

}  // namespace
}  // namespace braid
