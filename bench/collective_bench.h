// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/status.h"
#include "bench/collective_kinds.h"
#include "bench/collective_report.h"
#include "bench/environment.h"
#include "bench/size_range.h"

namespace braid::bench {

struct CollectiveOptions {
  CollectiveSetup setup;
  Course course;
  SizeRange range;              // where there are no `sizes`
  std::vector<uint64_t> sizes;  // bytes, to be measured as they are
  uint32_t timeout_ms = 60'000;
  bool counts = false;  // what operations make processes and the kernel do, too
  std::string socket_path;
  bool as_json = false;
};

// Sets who this rank is, and the course's sizes: those of the range as nccl-tests rounds them to
// what the ranks can be given, without those that give them nothing. An error: the arguments are
// wrong, for these ranks.
Status settle(CollectiveOptions& options, const Environment& environment);

// Runs one collective at all sizes, as one rank of a job; all ranks call it with the same settled
// options. An iteration begins with a barrier and lasts as long as on the slowest rank (nccl-tests:
// -z 3 -a 3). Behind the iterations of a size come those with new data whose results are checked:
// each rank compares all that it got with what is right. Rank 0 prints to stdout. An error on all
// ranks, at the end, if a result was wrong on one.
Status run_collective(const CollectiveOptions& options, const Environment& environment);

}  // namespace braid::bench
