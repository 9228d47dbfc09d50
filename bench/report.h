// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "metrics/status.h"

namespace braid::bench {

// All iterations of one size.
struct Measurement {
  uint64_t bytes = 0;
  std::string dtype;
  uint32_t ranks = 1;
  std::vector<double> seconds;  // one per iteration: the slowest rank's
  double cpu_seconds = 0;       // of all trainers in these iterations; the daemons' is not in it
  // Of all trainers, for filling in and checking the data of these iterations and of the warm-up.
  double checking_cpu_seconds = 0;
  uint32_t nodes = 1;
  uint32_t flows = 0;     // open from this node to the next one in the ring
  std::string transport;  // as the daemon describes it
};

double median(std::vector<double> values);
// The smallest value that 99 % of all do not exceed; the largest one when there are fewer than 100.
double p99(std::vector<double> values);

// "12.3 us", "1.234 ms", "5.678 s"
std::string format_seconds(double seconds);

// 2(n−1)/n · bytes / time, with n = ranks: what every rank must send and receive at least, whatever
// the algorithm. Figures for other numbers of ranks, sizes and collectives can be compared with it,
// and with the speed of the wire.
double bus_gbit_per_second(uint64_t bytes, uint32_t ranks, double seconds);

// Sets nodes, flows and transport from what the daemon says about the job.
Status describe(const DaemonStatus& status, const std::string& job_name, Measurement& measurement);

// One JSON object, or one line of the table, without a line end.
std::string to_json(const Measurement& measurement);
std::string table_heading(const Measurement& first);
std::string table_row(const Measurement& measurement);

}  // namespace braid::bench
