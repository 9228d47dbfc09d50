// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "tune/all_searchers.h"
#include "tune/untried.h"

namespace braid {
namespace {

constexpr size_t kParentsMax = 4;
constexpr int kChildrenMax = 64;  // stillborn ones: not allowed, or tried already

// The best that can be applied, the better first.
std::vector<Setting> parents_of(const SearchView& view) {
  std::vector<const SettingScore*> ranked;
  for (const SettingScore& score : view.scores) {
    if (score.turns > 0) ranked.push_back(&score);
  }
  std::stable_sort(ranked.begin(), ranked.end(),
                   [](const auto* a, const auto* b) { return a->score < b->score; });
  std::vector<Setting> parents;
  for (size_t i = 0; i < std::min(ranked.size(), kParentsMax); ++i) {
    parents.push_back(ranked[i]->setting);
  }
  return parents;
}

class PopulationSearcher final : public Searcher {
 public:
  std::optional<Setting> propose(const SearchView& view, RandomGenerator& random) override {
    const std::vector<Setting> parents = parents_of(view);
    for (int i = 0; i < kChildrenMax; ++i) {
      const Setting setting = child(view.space, parents, random);
      if (is_untried(view, setting)) return setting;
    }
    return random_untried_near(view, view.scores[view.best].setting, random);
  }
  std::string_view name() const override { return "population"; }

 private:
  // The smaller of two draws: the better a parent, the more children.
  static const Setting& draw(const std::vector<Setting>& parents, RandomGenerator& random) {
    const uint64_t first = random.below(parents.size());
    return parents[std::min(first, random.below(parents.size()))];
  }

  static Setting child(const SearchSpace& space, const std::vector<Setting>& parents,
                       RandomGenerator& random) {
    const Setting& one = draw(parents, random);
    const Setting& other = draw(parents, random);
    Setting setting = one;
    const size_t parameters = space.parameters().size();
    for (size_t i = 0; i < parameters; ++i) {
      if (random.below(2) == 0) setting.indexes[i] = other.indexes[i];
      if (random.below(parameters) > 1) continue;  // two of them mutate, on average
      const int places = random.below(2) == 0 ? -1 : 1;
      if (const auto mutated = moved(space, setting, i, places)) setting = *mutated;
    }
    return setting;
  }
};

}  // namespace

std::unique_ptr<Searcher> make_population_searcher() {
  return std::make_unique<PopulationSearcher>();
}

}  // namespace braid
