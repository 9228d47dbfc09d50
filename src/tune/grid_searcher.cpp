// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "tune/all_searchers.h"
#include "tune/untried.h"

namespace braid {
namespace {

class GridSearcher final : public Searcher {
 public:
  std::optional<Setting> propose(const SearchView& view, RandomGenerator& random) override {
    const size_t parameters = view.space.parameters().size();
    const Setting& best = view.scores[view.best].setting;
    if (!started_) {
      started_ = true;
      next_parameter_ = random.below(parameters);
    }
    for (int parts = 2;; parts *= 2) {
      for (size_t i = 0; i < parameters; ++i) {
        const size_t parameter = (next_parameter_ + i) % parameters;
        if (auto setting = around(view, best, parameter, parts, random)) {
          // The other direction comes when the others have had their turn.
          next_parameter_ = (parameter + 1) % parameters;
          return setting;
        }
      }
      if (parts > static_cast<int>(SearchSpace::kValuesMax)) break;
    }
    return random_untried(view, random);
  }
  std::string_view name() const override { return "grid"; }

 private:
  // Towards the longer end of the list first: there is more to find.
  static std::optional<Setting> around(const SearchView& view, const Setting& best,
                                       size_t parameter, int parts, RandomGenerator& random) {
    const int values = static_cast<int>(view.space.parameters()[parameter].values.size());
    if (values == 1) return std::nullopt;
    const int stride = std::max(1, values / parts);
    const int below = best.indexes[parameter];
    const int above = values - 1 - below;
    const bool up = above != below ? above > below : random.below(2) == 0;
    for (const int places : {up ? stride : -stride, up ? -stride : stride}) {
      auto setting = moved(view.space, best, parameter, places);
      if (setting && is_untried(view, *setting)) return setting;
    }
    return std::nullopt;
  }

  bool started_ = false;
  size_t next_parameter_ = 0;
};

}  // namespace

std::unique_ptr<Searcher> make_grid_searcher() { return std::make_unique<GridSearcher>(); }

}  // namespace braid
