// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "engine/element_ranges.h"

namespace braid {

// Who owns the elements of a set, whatever plan and settings say; and which of them an all-reduce
// holds: what continues a range is cut as one with it. The set's elements are dealt out in stripes:
// element e belongs to the node at place (e / stripe_elements) mod nodes. So no element goes to
// another node before the job's epoch changes. The smaller the stripes are against the groups, the
// more equal are the parts of a group that the nodes own.
struct FixedOwners : ElementRanges {
  uint64_t stripe_elements = 1;
};

}  // namespace braid
