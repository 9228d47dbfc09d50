// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "explain/node_facts.h"

namespace braid {

// What the order and the spacing of a job's latest operations say, where it has no planned tensors
// and so no steps. All ranks get an operation's result at about the same moment, so the rank that
// waits least submitted it last, also where nodes' clocks differ. Seconds.
struct OperationOrder {
  struct Rank {
    uint32_t rank = 0;
    std::string node;
    size_t last_in = 0;     // operations that it submitted well after most others
    double late = 0;        // the median of these
    double waited_for = 0;  // time in which others waited for it, however many operations at once
    std::string operation;  // the one that it was latest with
  };
  size_t operations = 0;  // that all of the nodes told of
  double seconds = 0;     // from the first one's submission to the last one's end
  double network = 0;     // time in which an operation was on its way that all had submitted
  std::vector<Rank> ranks;
};

OperationOrder order_of_operations(const JobFacts& facts);

}  // namespace braid
