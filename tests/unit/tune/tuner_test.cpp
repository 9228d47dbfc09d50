// SPDX-License-Identifier: Apache-2.0
#include "tune/tuner.h"

#include <cmath>
#include <limits>
#include <map>
#include <set>

#include "tests/unit/tune/tuner_run.h"

namespace braid {
namespace {

class TunerTest : public testing::Test {
 protected:
  const SearchSpace space_ = transport_space();
  const Setting defaults_ = setting_of(space_, {});
};

std::string refusal(const Tuner::Options& options) {
  const SearchSpace space = transport_space();
  const auto tuner = Tuner::create(space, setting_of(space, {}), options);
  return tuner ? "no error" : tuner.status().message();
}

TEST_F(TunerTest, RefusesOptionsByName) {
  EXPECT_EQ(refusal({}), "no error");
  EXPECT_EQ(refusal({.trials = 0}), "trials: 0; right are 1 to 1000");
  EXPECT_EQ(refusal({.steps_per_trial = 101}), "steps_per_trial: 101; right are 1 to 100");
  EXPECT_EQ(refusal({.probe_steps = 4}), "probe_steps: 4; right are 1 to 3");
  EXPECT_EQ(refusal({.patience_probes = 0}), "patience_probes: 0; right are 1 to 10000");
  EXPECT_EQ(refusal({.duel_rounds = 0}), "duel_rounds: 0; right are 1 to 100");
  EXPECT_EQ(refusal({.duel_steps = 0}), "duel_steps: 0; right are 1 to 100");
  EXPECT_NE(refusal({.searchers = {"oracle"}}).find("'oracle'"), std::string::npos);
}

TEST_F(TunerTest, RefusesDefaultsThatTheSpaceDoesNotAllow) {
  EXPECT_FALSE(Tuner::create(transport_space(), Setting{{0, 0, 0, 5, 0}}, {}));
}

TEST_F(TunerTest, BeginsWithTheDefaultsAndAsksAgainUntilItIsAnswered) {
  Tuner tuner = make_tuner(space_, defaults_, {});
  for (int i = 0; i < 2; ++i) {
    const auto turn = tuner.next().value();
    EXPECT_EQ(turn.setting, defaults_);
    EXPECT_EQ(turn.purpose, TrialPurpose::Baseline);
    EXPECT_EQ(turn.steps, 3u);
    EXPECT_TRUE(std::isinf(turn.hopeless_seconds));
  }
  EXPECT_TRUE(tuner.trials().empty());
  EXPECT_EQ(tuner.winner(), defaults_);
}

TEST_F(TunerTest, RefusesReportsThatCannotBe) {
  Tuner tuner = make_tuner(space_, defaults_, {});
  const std::vector<double> good = {1, 1, 1};
  EXPECT_FALSE(tuner.report(defaults_, good)) << "nothing was asked";
  ASSERT_TRUE(tuner.next());
  EXPECT_FALSE(tuner.report(space_.at(1), good));
  EXPECT_FALSE(tuner.report(defaults_, {}));
  EXPECT_FALSE(tuner.report(defaults_, std::vector<double>(4, 1.0)));
  for (const double wrong : {0.0, -1.0, std::nan(""), std::numeric_limits<double>::infinity()}) {
    EXPECT_FALSE(tuner.report(defaults_, std::vector<double>{1, wrong, 1})) << wrong;
  }
  EXPECT_TRUE(tuner.trials().empty());
  EXPECT_TRUE(tuner.report(defaults_, good));
  EXPECT_EQ(tuner.trials().size(), 1u);
}

TEST_F(TunerTest, MeasuresNoMoreStepsThanItSays) {
  const std::vector<Surface> surfaces = {network_surface({}), flat_surface(),
                                         cliff_surface(network_surface({}))};
  for (uint64_t seed = 0; seed < 60; ++seed) {
    RandomGenerator random(seed);
    Tuner::Options options;
    options.trials = 1 + static_cast<uint32_t>(random.below(40));
    options.steps_per_trial = 1 + static_cast<uint32_t>(random.below(5));
    options.probe_steps = 1 + static_cast<uint32_t>(random.below(options.steps_per_trial));
    options.duel_rounds = 1 + static_cast<uint32_t>(random.below(6));
    options.duel_steps = 1 + static_cast<uint32_t>(random.below(3));
    options.seed = seed;
    std::optional<Tuner::Known> known;
    const bool is_same_job = seed % 3 == 0;
    if (seed % 3 != 1) {
      known = {space_.at(space_.size() - 1), 3,
               is_same_job ? KnownFrom::SameJob : KnownFrom::AlikeJob};
    }
    Tuner tuner = make_tuner(space_, defaults_, options, known);
    FakeJob job(space_, surfaces[seed / 3 % 3], {.noise = 0.1}, seed);
    tune(tuner, job);
    EXPECT_LE(job.steps(), Tuner::steps_max(options, is_same_job)) << "seed " << seed;
    EXPECT_TRUE(tuner.is_done());
    EXPECT_FALSE(tuner.next());
  }
}

TEST_F(TunerTest, StepsMaxIsTheDocumentedSum) {
  EXPECT_EQ(Tuner::steps_max({.trials = 20, .steps_per_trial = 3, .duel_rounds = 5}, false), 80u);
  EXPECT_EQ(Tuner::steps_max({.trials = 20, .steps_per_trial = 3, .duel_rounds = 5}, true), 103u);
}

TEST_F(TunerTest, IsDeterministicBySeed) {
  const auto settings = [&](uint64_t seed) {
    Tuner tuner = make_tuner(space_, defaults_, {.seed = seed});
    FakeJob job(space_, network_surface({}), {}, 1);
    tune(tuner, job);
    std::vector<Setting> all;
    for (const Trial& trial : tuner.trials()) all.push_back(trial.setting);
    return all;
  };
  EXPECT_EQ(settings(1), settings(1));
  EXPECT_NE(settings(1), settings(2));
}

TEST_F(TunerTest, TriesEverySearcherAndShowsIt) {
  Tuner tuner = make_tuner(space_, defaults_, {});
  FakeJob job(space_, network_surface({}), {}, 1);
  tune(tuner, job);
  std::set<std::string_view> searchers;
  std::map<TrialPurpose, int> purposes;
  uint64_t steps = 0;
  for (const Trial& trial : tuner.trials()) {
    if (trial.purpose == TrialPurpose::Probe) searchers.insert(trial.searcher);
    ++purposes[trial.purpose];
    steps += trial.steps;
    EXPECT_GT(trial.median_seconds, 0);
    EXPECT_FALSE(purpose_name(trial.purpose).empty());
  }
  EXPECT_EQ(searchers.size(), searcher_names().size());
  EXPECT_EQ(steps, job.steps());
  EXPECT_GE(purposes[TrialPurpose::Baseline], 2);
  EXPECT_GE(purposes[TrialPurpose::Repeat], 1);
  EXPECT_GE(purposes[TrialPurpose::Duel], 4);
  EXPECT_EQ(purposes[TrialPurpose::Check], 0);
}

TEST_F(TunerTest, AProbeIsRepeatedBeforeItBecomesTheIncumbent) {
  Tuner tuner = make_tuner(space_, defaults_, {});
  FakeJob job(space_, network_surface({}), {}, 1);
  std::map<Setting, int> turns;
  while (const auto turn = tuner.next()) {
    if (turn->purpose == TrialPurpose::Duel) break;
    std::vector<double> seconds;
    for (uint32_t i = 0; i < turn->steps; ++i) seconds.push_back(job.step(turn->setting));
    ++turns[turn->setting];
    const Setting before = tuner.incumbent();
    ASSERT_TRUE(tuner.report(turn->setting, seconds));
    if (tuner.incumbent() == before) continue;
    EXPECT_EQ(tuner.incumbent(), turn->setting);
    EXPECT_GE(turns[turn->setting], 2);
  }
  EXPECT_NE(tuner.incumbent(), defaults_);
}

TEST_F(TunerTest, EndsEarlyWhereThereIsLittleToTry) {
  auto space = SearchSpace::create({{"a", {1, 2}}, {"b", {1}}});
  ASSERT_TRUE(space);
  Tuner tuner = make_tuner(*space, space->at(0), {});
  FakeJob job(
      *space, [](auto v) { return v[0] == 1 ? 1 : 0.5; }, {}, 1);
  tune(tuner, job);
  EXPECT_LT(job.steps(), 30u);
  EXPECT_EQ(tuner.winner(), space->at(1));
  EXPECT_NEAR(tuner.gain(), 2, 0.2);
  auto single = SearchSpace::create({{"a", {1}}});
  ASSERT_TRUE(single);
  Tuner pinned = make_tuner(*single, single->at(0), {});
  FakeJob same(*single, flat_surface(), {}, 1);
  tune(pinned, same);
  EXPECT_EQ(pinned.winner(), single->at(0));
}

}  // namespace
}  // namespace braid
