// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "base/assert.h"

namespace braid {

// Who owns the elements of a set, whatever plan and settings say; and which of them an all-reduce
// holds. A set's elements are those of its tensors, one tensor after the other in an order that is
// the same on all nodes and in all steps. They are dealt out in stripes: element e belongs to the
// node at place (e / stripe_elements) mod nodes. So no element goes to another node before the
// job's epoch changes. The smaller the stripes are against the groups, the more equal are the parts
// of a group that the nodes own.
struct FixedOwners {
  // Elements that follow one another in the set, from number `first` on.
  struct Range {
    uint64_t first = 0;
    uint64_t elements = 0;
  };

  uint64_t stripe_elements = 1;
  std::vector<Range> ranges;  // the operation's elements, in its own order

  // The next elements of the operation: those of a tensor. What continues the range before is one
  // with it, and is cut as one.
  void append(uint64_t first, uint64_t elements) {
    if (elements == 0) return;
    if (!ranges.empty() && ranges.back().first + ranges.back().elements == first) {
      ranges.back().elements += elements;
    } else {
      ranges.push_back({first, elements});
    }
  }

  // Which element of the set is number `element` of the operation?
  uint64_t in_set(uint64_t element) const {
    auto range = ranges.begin();
    for (; range != ranges.end() && element >= range->elements; ++range) element -= range->elements;
    BRAID_ASSERT(range != ranges.end(), "an operation ends with its ranges");
    return range->first + element;
  }
};

}  // namespace braid
