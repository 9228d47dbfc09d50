// SPDX-License-Identifier: Apache-2.0
// What the tuner does with a setting that an earlier job ended with.
#include "tests/unit/tune/tuner_run.h"

namespace braid {
namespace {

double gain_of(const FakeJob& job, const Setting& defaults, const Setting& setting) {
  return job.true_seconds(defaults) / job.true_seconds(setting);
}

class TunerKnown : public testing::Test {
 protected:
  const SearchSpace space_ = transport_space();
  const Setting defaults_ = setting_of(space_, {});
  const Setting good_ = setting_of(space_, {{"flows_per_link", 8},
                                            {"streams", 4},
                                            {"unit_bytes", 4 << 20},
                                            {"chunk_bytes", 512 << 10},
                                            {"window_bytes", 2 << 20}});
};

TEST_F(TunerKnown, TheSameJobsSettingHoldsAtOnceAndIsCheckedInThreeSteps) {
  for (uint64_t seed = 0; seed < 50; ++seed) {
    FakeJob job(space_, network_surface({}), {}, seed);
    const double gain = gain_of(job, defaults_, good_);
    Tuner tuner = make_tuner(space_, defaults_, {}, Tuner::Known{good_, gain, KnownFrom::SameJob});
    EXPECT_EQ(tuner.winner(), good_);
    EXPECT_EQ(tuner.next()->setting, good_);
    EXPECT_EQ(tuner.next()->purpose, TrialPurpose::Check);
    tune(tuner, job);
    EXPECT_EQ(job.steps(), 3u);
    EXPECT_EQ(tuner.winner(), good_);
    EXPECT_EQ(tuner.gain(), gain);
  }
}

TEST_F(TunerKnown, WhereTheDefaultsWereBestThereIsNothingToMeasure) {
  Tuner tuner = make_tuner(space_, defaults_, {}, Tuner::Known{defaults_, 1, KnownFrom::SameJob});
  EXPECT_TRUE(tuner.is_done());
  EXPECT_FALSE(tuner.next());
}

TEST_F(TunerKnown, WhatDoesNotHoldAnyMoreIsSearchedAnew) {
  for (uint64_t seed = 0; seed < 50; ++seed) {
    FakeJob job(space_, bowl_surface(space_, good_), {}, seed);
    Tuner tuner =
        make_tuner(space_, good_, {.seed = seed}, Tuner::Known{defaults_, 1.5, KnownFrom::SameJob});
    tune(tuner, job);
    EXPECT_EQ(tuner.trials()[3].purpose, TrialPurpose::Duel);
    EXPECT_GT(job.steps(), 20u);
    EXPECT_LE(job.true_seconds(tuner.winner()), job.true_seconds(good_) * 1.05);
  }
}

TEST_F(TunerKnown, WhatGainsLessThanItDidMayStillWinADuel) {
  int kept = 0;
  for (uint64_t seed = 0; seed < 50; ++seed) {
    FakeJob job(space_, network_surface({}), {}, seed);
    Tuner tuner = make_tuner(space_, defaults_, {}, Tuner::Known{good_, 1000, KnownFrom::SameJob});
    tune(tuner, job);
    kept += tuner.winner() == good_;
    EXPECT_EQ(tuner.trials()[3].purpose, TrialPurpose::Duel);
  }
  EXPECT_EQ(kept, 50);
}

TEST_F(TunerKnown, AnotherJobsSettingIsTheFirstProbe) {
  Tuner tuner = make_tuner(space_, defaults_, {}, Tuner::Known{good_, 2, KnownFrom::AlikeJob});
  EXPECT_EQ(tuner.winner(), defaults_);
  const std::vector<double> seconds = {1, 1, 1};
  ASSERT_TRUE(tuner.next());
  ASSERT_TRUE(tuner.report(defaults_, seconds));
  const auto probe = tuner.next().value();
  EXPECT_EQ(probe.setting, good_);
  EXPECT_EQ(probe.purpose, TrialPurpose::Probe);
  EXPECT_EQ(probe.searcher, "knowledge");
}

// After the network has changed: what holds is the incumbent, what is configured must be beaten.
TEST_F(TunerKnown, WhatHoldsInThisRunIsTheIncumbentAndTheDefaultsAreProbed) {
  const Tuner::Known holding{good_, 1, KnownFrom::ThisRun};
  for (uint64_t seed = 0; seed < 50; ++seed) {
    FakeJob job(space_, network_surface({}), {}, seed);
    Tuner tuner = make_tuner(space_, defaults_, {.seed = seed}, holding);
    EXPECT_EQ(tuner.winner(), good_);
    EXPECT_EQ(tuner.next()->setting, good_);
    EXPECT_EQ(tuner.next()->purpose, TrialPurpose::Baseline);
    tune(tuner, job);
    EXPECT_EQ(tuner.trials()[1].setting, defaults_);
    EXPECT_LE(job.true_seconds(tuner.winner()), job.true_seconds(good_) * 1.1);
  }
}

TEST_F(TunerKnown, WhatHoldsInThisRunGoesWhereTheDefaultsHaveBecomeBetter) {
  const Setting holding = defaults_;
  const Setting defaults = good_;
  for (uint64_t seed = 0; seed < 50; ++seed) {
    FakeJob job(space_, bowl_surface(space_, defaults), {}, seed);
    Tuner tuner =
        make_tuner(space_, defaults, {.seed = seed}, Tuner::Known{holding, 1, KnownFrom::ThisRun});
    tune(tuner, job);
    EXPECT_LE(job.true_seconds(tuner.winner()), job.true_seconds(defaults) * 1.05);
  }
}

TEST_F(TunerKnown, AKnownSettingMustBeOne) {
  EXPECT_FALSE(
      Tuner::create(space_, defaults_, {}, Tuner::Known{Setting{{0}}, 1, KnownFrom::SameJob}));
  EXPECT_FALSE(
      Tuner::create(space_, defaults_, {}, Tuner::Known{defaults_, 0, KnownFrom::SameJob}));
}

}  // namespace
}  // namespace braid
