// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "base/assert.h"

namespace braid {

// Which elements of a set an operation holds, in the operation's own order. A set's elements are
// those of its tensors, one tensor after the other in an order that is the same on all nodes and in
// all steps.
struct ElementRanges {
  // Elements that follow one another in the set, from number `first` on.
  struct Range {
    uint64_t first = 0;
    uint64_t elements = 0;
  };

  std::vector<Range> ranges;

  // The next elements of the operation: those of a tensor. What continues the range before is one
  // with it.
  void append(uint64_t first, uint64_t elements) {
    if (elements == 0) return;
    BRAID_ASSERT(elements <= UINT64_MAX - first, "the elements of a set were checked");
    if (!ranges.empty() && ranges.back().first + ranges.back().elements == first) {
      ranges.back().elements += elements;
    } else {
      ranges.push_back({first, elements});
    }
  }

  // Which element of the set is number `element` of the operation?
  uint64_t in_set(uint64_t element) const { return of(element, 1).front().first; }

  // Where in the set the operation's elements from number `element` on are.
  std::vector<Range> of(uint64_t element, uint64_t elements) const {
    std::vector<Range> found;
    for (const Range& range : ranges) {
      if (elements == 0) break;
      if (element >= range.elements) {
        element -= range.elements;
        continue;
      }
      const uint64_t taken = std::min(elements, range.elements - element);
      found.push_back({range.first + element, taken});
      elements -= taken;
      element = 0;
    }
    BRAID_ASSERT(elements == 0, "an operation ends with its ranges");
    return found;
  }
};

}  // namespace braid
