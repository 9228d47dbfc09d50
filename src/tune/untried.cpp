// SPDX-License-Identifier: Apache-2.0
#include "tune/untried.h"

#include <algorithm>

namespace braid {
namespace {

constexpr int kDrawsMax = 64;
constexpr int kNearPlacesMax = 2;

// A place or two, up or down; within the list.
void step_somewhere(const SearchSpace& space, size_t parameter, RandomGenerator& random,
                    Setting& setting) {
  const int distance = 1 + static_cast<int>(random.below(kNearPlacesMax));
  const int places = random.below(2) == 0 ? -distance : distance;
  const int last = static_cast<int>(space.parameters()[parameter].values.size()) - 1;
  setting.indexes[parameter] =
      static_cast<uint8_t>(std::clamp(setting.indexes[parameter] + places, 0, last));
}

}  // namespace

bool is_untried(const SearchView& view, const Setting& setting) {
  const auto same = [&](const SettingScore& score) { return score.setting == setting; };
  return view.space.allows(setting) && std::none_of(view.scores.begin(), view.scores.end(), same);
}

std::optional<Setting> moved(const SearchSpace& space, const Setting& setting, size_t parameter,
                             int places) {
  const int last = static_cast<int>(space.parameters()[parameter].values.size()) - 1;
  const int index = setting.indexes[parameter] + places;
  if (index < 0 || index > last) return std::nullopt;
  Setting out = setting;
  out.indexes[parameter] = static_cast<uint8_t>(index);
  return out;
}

std::optional<Setting> random_untried(const SearchView& view, RandomGenerator& random) {
  for (int draw = 0; draw < kDrawsMax; ++draw) {
    Setting setting = view.space.at(random.below(view.space.size()));
    if (is_untried(view, setting)) return setting;
  }
  // Few are left, if any: the next one from some place on.
  const uint64_t start = random.below(view.space.size());
  for (uint64_t i = 0; i < view.space.size(); ++i) {
    Setting setting = view.space.at((start + i) % view.space.size());
    if (is_untried(view, setting)) return setting;
  }
  return std::nullopt;
}

std::optional<Setting> random_untried_near(const SearchView& view, const Setting& around,
                                           RandomGenerator& random) {
  const size_t parameters = view.space.parameters().size();
  for (int draw = 0; draw < kDrawsMax; ++draw) {
    Setting setting = around;
    step_somewhere(view.space, random.below(parameters), random, setting);
    while (random.below(2) == 0) {
      step_somewhere(view.space, random.below(parameters), random, setting);
    }
    if (is_untried(view, setting)) return setting;
  }
  return random_untried(view, random);
}

}  // namespace braid
