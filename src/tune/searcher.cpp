// SPDX-License-Identifier: Apache-2.0
#include "tune/searcher.h"

#include <string>

#include "tune/all_searchers.h"

namespace braid {
namespace {

struct SearcherKind {
  std::string_view name;
  std::unique_ptr<Searcher> (*make)();
};

constexpr SearcherKind kSearcherKinds[] = {
    {"grid", make_grid_searcher},         {"random", make_random_searcher},
    {"halving", make_halving_searcher},   {"population", make_population_searcher},
    {"bayesian", make_bayesian_searcher},
};

}  // namespace

std::span<const std::string_view> searcher_names() {
  static const std::vector<std::string_view> names = [] {
    std::vector<std::string_view> all;
    for (const SearcherKind& kind : kSearcherKinds) all.push_back(kind.name);
    return all;
  }();
  return names;
}

Result<std::unique_ptr<Searcher>> make_searcher(std::string_view name) {
  std::string known;
  for (const SearcherKind& kind : kSearcherKinds) {
    if (kind.name == name) return kind.make();
    if (!known.empty()) known += ", ";
    known += kind.name;
  }
  return make_status(StatusCode::NotFound, "no searcher is named '{}'; there are {}", name, known);
}

}  // namespace braid
