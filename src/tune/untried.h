// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include "tune/searcher.h"

// Steps that several searchers share.
namespace braid {

// Allowed and never measured.
bool is_untried(const SearchView& view, const Setting& setting);

// `setting` with one parameter moved; nothing where the list ends.
std::optional<Setting> moved(const SearchSpace& space, const Setting& setting, size_t parameter,
                             int places);

// Each one as likely as the others, as long as not nearly all are tried.
std::optional<Setting> random_untried(const SearchView& view, RandomGenerator& random);
// Some parameters of `around` moved by a place or two; any other setting where those are tried.
std::optional<Setting> random_untried_near(const SearchView& view, const Setting& around,
                                           RandomGenerator& random);

}  // namespace braid
