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
  uint64_t in_set(uint64_t element) const { return (*of(element, 1).begin()).first; }

  // Where in the set the operation's elements from number `element` on are: ranges, one after the
  // other, that are made while they are read. For the loop `for (const Range range : pieces)`.
  class Pieces {
   public:
    struct End {};
    Pieces(const Range* range, uint64_t skipped, uint64_t left)
        : range_(range), skipped_(skipped), left_(left) {}
    Pieces begin() const { return *this; }
    End end() const { return {}; }
    bool operator==(End) const { return left_ == 0; }
    Range operator*() const {
      return {range_->first + skipped_, std::min(left_, range_->elements - skipped_)};
    }
    Pieces& operator++() {
      left_ -= (**this).elements;
      skipped_ = 0;
      ++range_;
      return *this;
    }
    bool is_one() const { return (**this).elements == left_; }

   private:
    const Range* range_;
    uint64_t skipped_;  // elements of the range that come before
    uint64_t left_;
  };
  Pieces of(uint64_t element, uint64_t elements) const {
    auto first = ranges.begin();
    for (; first != ranges.end() && element >= first->elements; ++first) element -= first->elements;
    uint64_t there = 0;
    for (auto range = first; range != ranges.end() && there < element + elements; ++range)
      there += range->elements;
    BRAID_ASSERT(there >= element + elements, "an operation ends with its ranges");
    return {ranges.data() + (first - ranges.begin()), element, elements};
  }
};

}  // namespace braid
