// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <limits>
#include <set>

#include "tune/all_searchers.h"
#include "tune/expected_improvement.h"
#include "tune/gaussian_process.h"
#include "tune/untried.h"

namespace braid {
namespace {

constexpr size_t kPointsMax = 96;         // the work grows with their third power
constexpr double kScoreAboveBestMax = 2;  // e² times slower is as bad as any worse: cliffs
constexpr uint64_t kAllCandidatesMax = 1024;
constexpr int kRandomCandidates = 384;
constexpr size_t kNeighboursOf = 4;  // of so many of the best settings all are candidates

// The better ones where there are too many.
std::vector<SettingScore> points_of(const SearchView& view) {
  std::vector<SettingScore> points;
  for (const SettingScore& score : view.scores) {
    if (score.turns > 0) points.push_back(score);
  }
  std::stable_sort(points.begin(), points.end(),
                   [](const SettingScore& a, const SettingScore& b) { return a.score < b.score; });
  if (points.size() > kPointsMax) points.resize(kPointsMax);
  return points;
}

GaussianProcess process_through(const SearchSpace& space, const std::vector<SettingScore>& scores) {
  std::vector<GaussianProcess::Point> points;
  points.reserve(scores.size());
  for (const SettingScore& score : scores) {
    points.push_back({space.coordinates(score.setting),
                      std::min(score.score, scores.front().score + kScoreAboveBestMax),
                      score.noise});
  }
  return GaussianProcess::fit(std::move(points));
}

// Up to two places away in one parameter, or one place in two of them.
void add_neighbours(const SearchSpace& space, const Setting& of, std::set<Setting>& out) {
  const size_t parameters = space.parameters().size();
  for (size_t i = 0; i < parameters; ++i) {
    for (const int places : {-2, -1, 1, 2}) {
      const auto one = moved(space, of, i, places);
      if (!one) continue;
      out.insert(*one);
      for (size_t j = i + 1; j < parameters && (places == 1 || places == -1); ++j) {
        for (const int other_places : {-1, 1}) {
          if (const auto two = moved(space, *one, j, other_places)) out.insert(*two);
        }
      }
    }
  }
}

std::set<Setting> candidates_of(const SearchView& view, const std::vector<SettingScore>& points,
                                RandomGenerator& random) {
  std::set<Setting> candidates;
  if (view.space.size() <= kAllCandidatesMax) {
    for (uint64_t i = 0; i < view.space.size(); ++i) candidates.insert(view.space.at(i));
  } else {
    for (int i = 0; i < kRandomCandidates; ++i) {
      candidates.insert(view.space.at(random.below(view.space.size())));
    }
    for (size_t i = 0; i < std::min(points.size(), kNeighboursOf); ++i) {
      add_neighbours(view.space, points[i].setting, candidates);
    }
  }
  std::erase_if(candidates, [&](const Setting& setting) { return !is_untried(view, setting); });
  return candidates;
}

class BayesianSearcher final : public Searcher {
 public:
  std::optional<Setting> propose(const SearchView& view, RandomGenerator& random) override {
    const std::vector<SettingScore> points = points_of(view);
    const GaussianProcess process = process_through(view.space, points);
    // The best measured setting by its expected time: a lucky measurement is not the best.
    double best = std::numeric_limits<double>::infinity();
    for (const SettingScore& point : points) {
      best = std::min(best, process.predict(view.space.coordinates(point.setting)).mean);
    }
    std::optional<Setting> chosen;
    double most = -1;
    for (const Setting& setting : candidates_of(view, points, random)) {
      const auto expected = process.predict(view.space.coordinates(setting));
      const double gain = expected_improvement(expected.mean, expected.deviation, best);
      if (gain > most) {
        most = gain;
        chosen = setting;
      }
    }
    return chosen ? chosen : random_untried(view, random);
  }
  std::string_view name() const override { return "bayesian"; }
};

}  // namespace

std::unique_ptr<Searcher> make_bayesian_searcher() { return std::make_unique<BayesianSearcher>(); }

}  // namespace braid
