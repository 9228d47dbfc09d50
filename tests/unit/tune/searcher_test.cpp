// SPDX-License-Identifier: Apache-2.0
#include "tune/searcher.h"

#include <set>
#include <string>

#include <gtest/gtest.h>

#include "tests/unit/tune/tuner_surfaces.h"

namespace braid {
namespace {

// Measures what one searcher proposes, without noise.
class SearcherRun {
 public:
  SearcherRun(std::string_view name, const SearchSpace& space, Surface surface, uint64_t seed,
              const Setting& defaults)
      : space_(space),
        job_(space, std::move(surface), {.noise = 0}, seed),
        random_(seed),
        defaults_(defaults) {
    auto searcher = make_searcher(name);
    EXPECT_TRUE(searcher);
    searcher_ = std::move(searcher).value();
    scores_.push_back({defaults, 0, 0.01, 1});
  }

  std::optional<Setting> propose(uint32_t turns_left = 20) {
    return searcher_->propose({space_, scores_, best_, defaults_, turns_left}, random_);
  }
  void measure(const Setting& setting) {
    const double score = std::log(job_.true_seconds(setting) / job_.true_seconds(defaults_));
    const auto known = std::find_if(scores_.begin(), scores_.end(),
                                    [&](const auto& s) { return s.setting == setting; });
    if (known != scores_.end()) {
      ++known->turns;
      return;
    }
    scores_.push_back({setting, score, 0.01, 1});
    if (score < scores_[best_].score) best_ = scores_.size() - 1;
  }
  const std::vector<SettingScore>& scores() const { return scores_; }
  const SettingScore& best() const { return scores_[best_]; }

 private:
  const SearchSpace& space_;
  FakeJob job_;
  RandomGenerator random_;
  Setting defaults_;
  std::unique_ptr<Searcher> searcher_;
  std::vector<SettingScore> scores_;
  size_t best_ = 0;
};

SearchSpace small_space() {
  auto space = SearchSpace::create({{"a", {1, 2, 4, 8, 16}}, {"pinned", {7}}, {"b", {1, 2, 4, 8}}},
                                   [](std::span<const uint64_t> v) { return v[0] >= v[2]; });
  EXPECT_TRUE(space);
  return std::move(space).value();
}

size_t allowed_settings(const SearchSpace& space) {
  size_t count = 0;
  for (uint64_t i = 0; i < space.size(); ++i) count += space.allows(space.at(i));
  return count;
}

class EverySearcher : public testing::TestWithParam<std::string_view> {};

TEST_P(EverySearcher, ProposesAllowedSettingsOnly) {
  const SearchSpace space = transport_space();
  for (uint64_t seed = 0; seed < 5; ++seed) {
    SearcherRun run(GetParam(), space, network_surface({}), seed, setting_of(space, {}));
    for (int i = 0; i < 40; ++i) {
      const auto setting = run.propose().value();
      EXPECT_TRUE(space.allows(setting));
      run.measure(setting);
    }
  }
}

// Halving is another matter: its idea is to repeat.
class SearcherOfNewSettings : public testing::TestWithParam<std::string_view> {};

TEST_P(SearcherOfNewSettings, RepeatsNothingWhileOthersRemain) {
  const SearchSpace space = small_space();
  SearcherRun run(GetParam(), space, bowl_surface(space, space.at(12)), 1, space.at(0));
  const size_t allowed = allowed_settings(space);
  while (run.scores().size() < allowed) {
    const auto setting = run.propose().value();
    const size_t before = run.scores().size();
    run.measure(setting);
    ASSERT_EQ(run.scores().size(), before + 1);
  }
  EXPECT_FALSE(run.propose()) << "nothing is left";
}

TEST_P(EverySearcher, IsDeterministicBySeed) {
  const SearchSpace space = transport_space();
  const auto proposals = [&](uint64_t seed) {
    std::vector<Setting> all;
    SearcherRun run(GetParam(), space, network_surface({}), seed, setting_of(space, {}));
    for (int i = 0; i < 15; ++i) {
      all.push_back(run.propose().value());
      run.measure(all.back());
    }
    return all;
  };
  EXPECT_EQ(proposals(1), proposals(1));
  EXPECT_NE(proposals(1), proposals(2));
}

TEST_P(EverySearcher, FindsSomethingBetterThanPoorDefaults) {
  const SearchSpace space = transport_space();
  for (uint64_t seed = 0; seed < 10; ++seed) {
    SearcherRun run(GetParam(), space, network_surface({}), seed, setting_of(space, {}));
    for (int i = 0; i < 40; ++i) run.measure(run.propose().value());
    EXPECT_LT(run.best().score, std::log(0.7)) << "seed " << seed;
  }
}

INSTANTIATE_TEST_SUITE_P(Searchers, SearcherOfNewSettings,
                         testing::Values("grid", "random", "population", "bayesian"),
                         [](const auto& one) { return std::string(one.param); });
INSTANTIATE_TEST_SUITE_P(Searchers, EverySearcher, testing::ValuesIn(searcher_names()),
                         [](const auto& one) { return std::string(one.param); });

TEST(MakeSearcher, AnUnknownNamesErrorListsTheKnownOnes) {
  const auto searcher = make_searcher("oracle");
  ASSERT_FALSE(searcher);
  EXPECT_EQ(searcher.status().message(),
            "no searcher is named 'oracle'; there are grid, random, halving, population, bayesian");
}

TEST(GridSearcher, BeginsCoarseAndEndsWithNeighbours) {
  const auto space = SearchSpace::create({{"a", {1, 2, 4, 8, 16, 32, 64, 128}}});
  ASSERT_TRUE(space);
  SearcherRun run("grid", *space, flat_surface(), 1, space->at(0));
  std::vector<int> order;
  while (const auto setting = run.propose()) {
    order.push_back(setting->indexes[0]);
    run.measure(*setting);
  }
  ASSERT_EQ(order.size(), 7u);
  EXPECT_EQ((std::vector<int>{order.begin(), order.begin() + 3}), (std::vector<int>{4, 2, 1}));
}

TEST(HalvingSearcher, GivesTheBetterHalfMoreTurns) {
  const SearchSpace space = transport_space();
  SearcherRun run("halving", space, network_surface({}), 1, setting_of(space, {}));
  for (int i = 0; i < 4; ++i) run.measure(run.propose(16).value());
  std::vector<SettingScore> bracket(run.scores().begin() + 1, run.scores().end());
  ASSERT_EQ(bracket.size(), 4u);
  std::sort(bracket.begin(), bracket.end(),
            [](const auto& a, const auto& b) { return a.score < b.score; });
  std::set<Setting> repeated;
  for (int i = 0; i < 2; ++i) {
    repeated.insert(run.propose(16).value());
    run.measure(run.propose(16).value());
  }
  EXPECT_EQ(repeated, (std::set<Setting>{bracket[0].setting, bracket[1].setting}));
  EXPECT_EQ(run.propose(16).value().indexes.size(), 5u) << "and a new bracket begins";
}

TEST(BayesianSearcher, TakesTheObviousPlace) {
  // It gets better and better towards the last value, which nobody tried yet.
  const auto space = SearchSpace::create({{"a", {1, 2, 4, 8, 16, 32, 64, 128}}});
  ASSERT_TRUE(space);
  const auto falling = [](std::span<const uint64_t> v) {
    return 1.0 / (1 + std::log2(static_cast<double>(v[0])));
  };
  SearcherRun run("bayesian", *space, falling, 1, space->at(0));
  for (const uint64_t tried : {2, 4, 5}) run.measure(space->at(tried));
  EXPECT_GE(run.propose().value().indexes[0], 6);
}

}  // namespace
}  // namespace braid
