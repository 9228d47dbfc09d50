// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "planner/placement_problem.h"

namespace braid {

// A time that no placement's makespan M is below (but for rounding, see kPlacementTolerance): the
// largest of these.
//
// 1. Volume. Let C be the sum of all costs and E that of the items which everybody computes. Either
//    E = C and M = C, or both of these hold:
//    - The link waits for the first result, at least the smallest cost; then it spreads what is
//      owned. With E given, that is least where everybody computes the items with most spreading
//      per second of computing, the last one of them in part. So M gives the smallest E.
//    - The ranks must have room for C - E beside E each. A rank's last own result is spread after
//      all that the rank owns. So of the k ranks that own most, the last results are all spread
//      after the k-th's own work: that work is at most M minus the k shortest spreadings. It is at
//      most M - E, too.
//    The smallest M for which some E fulfils both is found by halving: more time never hurts.
// 2. One item. Everybody computes it and shares the rest, or its owner computes and spreads it.
// 3. Too many items. Some rank computes at least k + 1 of the k * ranks + 1 most expensive items,
//    also where everybody computes some of them. So its load is at least that of their cheapest
//    k + 1.
double placement_bound(const PlacementProblem& problem);

}  // namespace braid
