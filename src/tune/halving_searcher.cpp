// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "tune/all_searchers.h"
#include "tune/untried.h"

namespace braid {
namespace {

constexpr uint32_t kBracketMin = 4;
constexpr uint32_t kBracketMax = 16;
constexpr uint32_t kTurnsPerSetting = 4;  // what a setting of a bracket may cost in all

const SettingScore* score_of(const SearchView& view, const Setting& setting) {
  for (const SettingScore& score : view.scores) {
    if (score.setting == setting) return &score;
  }
  return nullptr;
}

uint32_t turns_of(const SearchView& view, const Setting& setting) {
  const SettingScore* score = score_of(view, setting);
  return score == nullptr ? 0 : score->turns;
}

class HalvingSearcher final : public Searcher {
 public:
  std::optional<Setting> propose(const SearchView& view, RandomGenerator& random) override {
    if (filling_ > 0) return next_member(view, random);
    while (bracket_.size() > 1) {
      for (const Setting& setting : bracket_) {
        if (turns_of(view, setting) < stage_) return setting;
      }
      keep_better_half(view);
    }
    return begin(view, random);
  }
  std::string_view name() const override { return "halving"; }

 private:
  std::optional<Setting> begin(const SearchView& view, RandomGenerator& random) {
    bracket_.clear();
    stage_ = 1;
    filling_ = std::clamp(view.turns_left / kTurnsPerSetting, kBracketMin, kBracketMax);
    return next_member(view, random);
  }

  std::optional<Setting> next_member(const SearchView& view, RandomGenerator& random) {
    auto setting = filling_ % 2 == 0 ? random_untried(view, random)
                                     : random_untried_near(view, view.center, random);
    if (!setting) {
      filling_ = 0;
      return std::nullopt;
    }
    --filling_;
    bracket_.push_back(*setting);
    return setting;
  }

  void keep_better_half(const SearchView& view) {
    std::stable_sort(bracket_.begin(), bracket_.end(), [&](const Setting& a, const Setting& b) {
      return score_of(view, a)->score < score_of(view, b)->score;
    });
    bracket_.resize(bracket_.size() / 2);
    ++stage_;
  }

  std::vector<Setting> bracket_;
  uint32_t filling_ = 0;  // settings that the bracket still lacks
  uint32_t stage_ = 1;    // turns that each setting in the bracket gets
};

}  // namespace

std::unique_ptr<Searcher> make_halving_searcher() { return std::make_unique<HalvingSearcher>(); }

}  // namespace braid
