// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "check/path_facts.h"

namespace braid {

// What one check says of the way to another node.
struct PathFinding {
  std::string check;  // "reach", "back", "version", …: see path_findings()
  bool is_good = false;
  std::string text;  // what is; where it is not good, also what to do
};

// All checks of one node, in the order in which they are told:
//
//   reach     this daemon reaches the other's control port, and both hold the same cluster key
//   back      the other one reaches this daemon's
//   version   both are the same
//   settings  those that must be the same on all nodes of a job are
//   clock     the clocks are less than kClockAheadNsMax apart
//   mtu       the rails that flows join have the same MTU, and links of the same speed
//   flows     they open in both directions
//   rate      what one flow carries and what all carry, both ways
//   loss      what the kernel had to send again
//
// After a check that leaves nothing to see for those below, these are missing. Pure.
std::vector<PathFinding> path_findings(const PathFacts& facts);

bool are_good(const std::vector<PathFinding>& findings);

inline constexpr uint64_t kClockAheadNsMax = 1'000'000'000;
// The part of the segments that were sent.
inline constexpr double kSegmentsResentMax = 0.02;
// One direction carries less than this part of what the other one does.
inline constexpr double kSlowDirection = 0.5;

// "1.87 Gbit/s"
std::string format_bit_rate(double bytes_per_second);

}  // namespace braid
