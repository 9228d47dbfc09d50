// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "tune/random_generator.h"
#include "tune/search_space.h"

namespace braid {

// What is known of one setting.
struct SettingScore {
  Setting setting;
  double score = 0;    // ln(its seconds / the defaults' seconds), drift taken out: less is better
  double noise = 0;    // standard error of `score`
  uint32_t turns = 0;  // how often it was measured
};

// What searchers decide by. The trials of all of them are in it.
struct SearchView {
  const SearchSpace& space;
  std::span<const SettingScore> scores;  // each setting once, the first tried first; never empty
  size_t best = 0;                       // the incumbent's place in `scores`
  Setting center;                        // begin around it: the defaults, or what was known
  uint32_t turns_left = 0;               // of all searchers together
};

// Proposes what to try next. Several searchers share the trials; each may keep a memory of what it
// proposed, but is never sure to be asked again. Deterministic by the generator. One thread.
class Searcher {
 public:
  virtual ~Searcher() = default;
  // An allowed setting that can be applied; one that was measured before only where that is the
  // searcher's idea (halving). Nothing: there is nothing left to try.
  virtual std::optional<Setting> propose(const SearchView& view, RandomGenerator& random) = 0;
  virtual std::string_view name() const = 0;
};

// grid, random, halving, population, bayesian: the order in which a portfolio begins.
std::span<const std::string_view> searcher_names();
// An unknown name's error lists the known ones.
Result<std::unique_ptr<Searcher>> make_searcher(std::string_view name);

}  // namespace braid
