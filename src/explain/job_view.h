// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "explain/node_facts.h"

namespace braid {

// The steps of a job that all nodes know, rank by rank. Seconds.
struct RankView {
  uint32_t rank = 0;
  std::string node;
  // By step.
  std::vector<double> before;
  std::vector<double> backward;
  std::vector<double> wait;
};

struct JobView {
  std::vector<uint64_t> steps;  // numbers, ascending
  std::vector<double> step_seconds;
  // By step: what the rank that came last has waited for. The others waited for that rank, too.
  std::vector<double> network;
  std::vector<RankView> ranks;  // ascending

  double step() const;  // medians
  double exposed() const;
};

// Nothing of a node without steps, or whose steps the others do not know.
JobView view_job(const JobFacts& facts);

double to_seconds(uint64_t nanoseconds);

// The lower middle one; 0 of none.
double median(std::vector<double> values);
double quantile(std::vector<double> values, double q);

// What each step must lose or gain before it is spoken of: this share of it, and so many seconds.
inline constexpr double kWorthShare = 0.05;
inline constexpr double kWorthSeconds = 0.001;
// `seconds` of a step that takes `step_seconds`.
bool is_worth(double seconds, double step_seconds);

// "41 ms", "0.6 ms", "1.25 s"
std::string format_time(double seconds);
// "3d 4h", "5m 2s": the two largest units.
std::string format_duration(double seconds);
// "1.93 Gbit/s"
std::string format_rate(double bytes_per_second);

}  // namespace braid
