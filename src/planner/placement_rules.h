// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "planner/placement_problem.h"

namespace braid {

// Rules that say at once who owns what, each with its source. Ties go to the item that was given
// first, then to the lowest rank.
//
//   round-robin  item i to rank i mod ranks. Ueno et al., "Scalable and Practical Natural Gradient"
//                (2020), and MPD-KFAC as SPD-KFAC describes it
//   block        neighbours together: the first items to rank 0, … as many for each rank as
//   possible lpt          the most expensive item first, to the rank that has least to do. Graham
//   (1969);
//                Distributed Shampoo, with bytes or a polynomial as costs
//   megatron     the same with long side * (short side)² as cost: layer-sharded Muon of Megatron-LM
//   lbp, lbp:d   SPD-KFAC's load balancing as its code has it: the largest dimension d first.
//                Everybody computes items with d < 1024. Others go to the rank whose dimensions
//                have the least sum. Shi et al., "Accelerating Distributed K-FAC with Smart
//                Parallelism of Computing and Communication Tasks" (ICDCS 2021)
//   lbp:d2       the same with the sum of d²
//   lbp:t        the same by times: everybody computes items that take less time than to spread
//   them
//                (the paper's test for each tensor), and the rank with least to do owns the others
//   kaisa:F      KAISA's greedy assignment. An item's gradient workers are F * ranks ranks: rank r
//                belongs to group r mod (1 / F). The most expensive item goes first, to the group
//                with least to do, and in it to the rank with least to do. The group's size is the
//                divisor of `ranks` that is nearest to F * ranks; KAISA refuses all but a divisor.
//                Pauloski et al., "KAISA" (SC 2021), and its code, kfac-pytorch
class PlacementRule {
 public:
  // INVALID_ARGUMENT: `name` is no rule of these.
  static Result<PlacementRule> parse(std::string_view name);
  // One of each kind, and of KAISA's one for each size of its groups: all that can be different.
  static std::vector<PlacementRule> all(uint32_t ranks);
  // Such as "best, exact, lpt, …, kaisa:F": what place() takes.
  static std::string_view names();

  // An owner for each item; see Placement::owners.
  std::vector<uint32_t> owners(const PlacementProblem& problem) const;

 private:
  enum class Kind : uint8_t {
    RoundRobin,
    Block,
    Lpt,
    Megatron,
    LbpDimension,
    LbpSquare,
    LbpTime,
    Kaisa,
  };
  explicit PlacementRule(Kind kind, double fraction = 1) : kind_(kind), fraction_(fraction) {}

  Kind kind_;
  double fraction_;
};

// The items in `sequence`, one after the other, each to the rank whose weights have the least sum.
// Changes no other item's owner.
void place_greedily(std::vector<uint32_t>& owners, const std::vector<uint32_t>& sequence,
                    const std::vector<double>& weights, uint32_t ranks);

}  // namespace braid
