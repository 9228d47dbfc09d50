// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace braid {

// What is known of the way between two daemons, as JSON and back: nodes tell it each other, and a
// daemon tells it braidctl. Reading checks everything: peers may be of another version, or broken.

inline constexpr size_t kPathJsonBytesMax = 64 << 10;

// One of the two nodes, as it describes itself.
struct PathEnd {
  struct Rail {
    std::string name;
    std::string address;      // numeric; empty: it has none
    uint32_t mtu = 0;         // bytes; 0: not known
    uint32_t speed_mbit = 0;  // of its link; 0: not known
    bool is_up = true;
  };

  std::string name;
  std::string address;  // of its control plane, as it tells others
  uint16_t port = 0;
  std::string version;  // of braid
  // All nodes of a job must agree about these three.
  uint64_t unit_bytes = 0;
  uint32_t chunk_bytes = 0;
  uint32_t io_loops = 0;
  uint32_t flows_per_link = 0;  // on each I/O loop
  uint64_t wall_ns = 0;         // of its clock (CLOCK_REALTIME), when it was asked
  std::vector<Rail> rails;
};

// Whether one end reaches the other. Empty: it does; else why not.
struct PathBack {
  std::string control;  // the other's control port, by a new connection
  std::string flows;    // the link there
};

// What came of sending over one flow, or over all.
struct PathRate {
  std::string error;  // why nothing was sent; then the rest is 0
  uint32_t flows = 0;
  uint64_t bytes = 0;  // acknowledged within the next
  uint64_t nanoseconds = 0;
  // What the kernel sent to the other node over TCP meanwhile; 0 segments: there were none.
  uint64_t segments = 0;
  uint64_t segments_resent = 0;
  // Bytes per second of this end's flows to the other node, afterwards: of the slowest and of the
  // one in the middle; 0: not known.
  double slowest_flow = 0;
  double median_flow = 0;
  uint32_t flows_failed = 0;
  std::string flow_error;  // the last one's that failed meanwhile

  double bytes_per_second() const {
    return nanoseconds == 0 ? 0
                            : static_cast<double>(bytes) * 1e9 / static_cast<double>(nanoseconds);
  }
};

struct PathFacts {
  std::string asked;  // host and port that were asked for
  std::string error;  // why the other daemon cannot be asked; then the rest is empty
  PathEnd here;
  PathEnd there;
  uint64_t round_trip_ns = 0;   // 0: not known
  int64_t clock_ahead_ns = 0;   // the other's clock before ours
  uint64_t clock_error_ns = 0;  // by how much that may be wrong
  PathBack to_there;
  PathBack to_here;
  // Nothing: was not asked for, or what is above has an error.
  std::optional<PathRate> one_to_there;
  std::optional<PathRate> one_to_here;
  std::optional<PathRate> all_to_there;
  std::optional<PathRate> all_to_here;
};

std::string to_json(const PathEnd& end);
std::string to_json(const PathBack& back);
std::string to_json(const PathRate& rate);
std::string to_json(const PathFacts& facts);

// Protocol: it is not what it should be.
Result<PathEnd> parse_path_end(std::string_view json);
Result<PathBack> parse_path_back(std::string_view json);
Result<PathRate> parse_path_rate(std::string_view json);
Result<PathFacts> parse_path_facts(std::string_view json);

}  // namespace braid
