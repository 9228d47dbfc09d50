// SPDX-License-Identifier: Apache-2.0
#include "tune/all_searchers.h"
#include "tune/untried.h"

namespace braid {
namespace {

class RandomSearcher final : public Searcher {
 public:
  std::optional<Setting> propose(const SearchView& view, RandomGenerator& random) override {
    near_ = !near_;
    return near_ ? random_untried_near(view, view.center, random) : random_untried(view, random);
  }
  std::string_view name() const override { return "random"; }

 private:
  bool near_ = true;  // the first one is anywhere
};

}  // namespace

std::unique_ptr<Searcher> make_random_searcher() { return std::make_unique<RandomSearcher>(); }

}  // namespace braid
