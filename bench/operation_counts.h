// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "base/status.h"
#include "bench/environment.h"
#include "bench/event_counts.h"
#include "bench/ranks.h"

namespace braid::bench {

// What one of many equal operations, one after the other, made processes and the kernel do; on the
// average.
struct OperationCounts {
  struct Process {
    std::optional<double> system_calls;  // nothing: they cannot be counted on all nodes
    std::optional<double> wake_ups;
  };
  uint64_t operations = 0;
  Process daemon;   // of one node
  Process trainer;  // one rank
  // Bytes that one daemon has written: sums of parts, and what it has only copied; and bytes that
  // the kernel has copied for it from and to its flows.
  std::optional<double> reduced;  // nothing: the daemons do not tell
  std::optional<double> copied;
  std::optional<double> sent;
  std::optional<double> received;
  std::string why_not;  // something is missing; empty: nothing is, on this rank
};

// Lines behind a row of the table, without the last line end.
std::string counts_lines(const OperationCounts& counts);

// Counts on one rank. The first rank of each node counts for its daemon, too.
class OperationCounter {
 public:
  // While the job is open.
  static Result<OperationCounter> create(const Environment& environment,
                                         const std::string& socket_path);

  // Both wait for a moment, until what the operations before have left to be done is done: flows
  // acknowledge late.
  Status begin();
  Status end();
  // What all ranks have counted; each of them calls it. `operations` were between begin() and
  // end().
  Result<OperationCounts> share(Ranks& ranks, uint64_t operations) const;

 private:
  struct Counted {
    std::optional<uint64_t> system_calls;
    std::optional<uint64_t> wake_ups;
  };
  struct Bytes {
    std::optional<uint64_t> reduced;
    std::optional<uint64_t> copied;
    std::optional<uint64_t> sent;
    std::optional<uint64_t> received;
  };

  OperationCounter(std::string socket_path, EventCounts trainer)
      : socket_path_(std::move(socket_path)), trainer_(std::move(trainer)) {}
  Counted read(const EventCounts& events);
  Result<Bytes> read_bytes() const;

  const std::string socket_path_;
  EventCounts trainer_;
  std::optional<EventCounts> daemon_;  // none: another rank counts it
  double nodes_ = 1;
  double ranks_ = 1;
  Counted trainer_counted_;
  Counted daemon_counted_;
  Bytes bytes_;
  std::string why_not_;
};

}  // namespace braid::bench
