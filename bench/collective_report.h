// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "bench/collective_kinds.h"
#include "bench/operation_counts.h"
#include "metrics/status.h"

namespace braid::bench {

// nccl-tests' name of a type, "float"; and the type of a name, which may be braid's, "float32",
// too.
const char* nccl_name(DataType dtype);
std::vector<std::string_view> datatype_names();  // nccl-tests'
Result<DataType> parse_datatype(std::string_view name);
// The same of reductions: "avg" and "average".
const char* nccl_name(Reduction reduction);
std::vector<std::string_view> op_names();
Result<Reduction> parse_op(std::string_view name);

// How the job's ranks are joined, as rank 0's daemon says it.
struct Surroundings {
  uint32_t nodes = 1;
  uint32_t flows = 0;     // open from this node to the next one in the ring
  std::string transport;  // as the daemon describes it
};
Result<Surroundings> surroundings_of(const DaemonStatus& status, const std::string& job_name);

// All iterations of one size.
struct Measurement {
  uint64_t bytes = 0;
  uint64_t count = 0;           // braid.h's
  std::vector<double> seconds;  // one per iteration: the slowest rank's
  // Elements, of all ranks together in all checked iterations; empty: nothing was checked.
  std::optional<uint64_t> wrong;
  double cpu_seconds = 0;  // of all trainers in these iterations; the daemons' is not in it
  // Of all trainers, for filling in and checking data.
  double checking_cpu_seconds = 0;
  std::optional<OperationCounts> counts;  // where they were asked for

  double mean_seconds() const;
};

// Gigabytes (10⁹ bytes) per second, of the mean time; 0 without a time.
double algorithm_bandwidth(const Measurement& measurement);
double bus_bandwidth(const CollectiveSetup& setup, const Measurement& measurement);

// What is measured, in the words of nccl-tests' first lines.
struct Course {
  std::vector<uint64_t> sizes;  // bytes
  std::string range;            // "minBytes 8 maxBytes 1024 step: 2(factor)"
  uint32_t warmup = 3;
  uint32_t iterations = 20;
  uint32_t checks = 1;  // iterations whose results are checked
};

// Lines as nccl-tests prints them, without the last line end. braid has results in memory of their
// own only, so there are no columns for results in place.
std::string table_heading(const CollectiveSetup& setup, const Course& course,
                          const Surroundings& around);
std::string table_row(const CollectiveSetup& setup, const Measurement& measurement);
// `out_of_bounds`: how many sizes had wrong results.
std::string table_end(const std::vector<double>& bus_bandwidths, size_t out_of_bounds);

// One JSON object.
std::string to_json(const CollectiveSetup& setup, const Measurement& measurement,
                    const Surroundings& around);

}  // namespace braid::bench
