// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "base/shared_number.h"

namespace braid {

// What the flows of one rail do between an I/O loop and another node, both ways, for metrics.
struct RailNumbers {
  // They only grow.
  SharedNumber bytes_sent;
  SharedNumber bytes_received;
  SharedNumber chunks_returned;    // not acknowledged when their flow died
  SharedNumber chunks_overdue;     // not acknowledged in time, and sent over another flow, too
  SharedNumber segments_resent;    // by TCP, as it told at each look; native flows that send
  SharedNumber flow_failures;      // of flows that this node sends on, as all below
  SharedNumber flow_replacements;  // opened again because they were slow

  SharedNumber flows_open;
  SharedNumber flows_opening;
  SharedNumber flows_failed;
  // As they were when the link last looked (SilentFlows::kLookEveryMs).
  SharedNumber unacknowledged_bytes;
  SharedNumber oldest_ns;           // how long ago the oldest chunk on its way was sent
  SharedNumber path_round_trip_ns;  // the longest of any flow, by TCP; 0: not known
};

// What one I/O loop has to do with another node, for metrics: its link there, and the flows that
// come from there. The loop writes, any thread reads.
class LinkNumbers {
 public:
  struct FlowRate {
    size_t rail = 0;
    double bytes_per_second = 0;
  };

  LinkNumbers(std::string peer, size_t rails) : peer_(std::move(peer)), rails_(rails) {}

  const std::string& peer() const { return peer_; }
  RailNumbers& rail_of(uint16_t flow) { return rails_[flow % rails_.size()]; }
  const std::vector<RailNumbers>& rails() const { return rails_; }

  // The bytes in the link's queue, when the link last looked.
  SharedNumber queued_bytes;
  // Sets the rates of the flows whose rate is known. Never waits: while another thread reads the
  // rates they stay as they are, until the next look.
  void show_rates(std::vector<FlowRate> rates) {
    const std::unique_lock lock(mutex_, std::try_to_lock);
    if (lock.owns_lock()) rates_ = std::move(rates);
  }
  std::vector<FlowRate> rates() const {
    const std::lock_guard lock(mutex_);
    return rates_;
  }

  // Why this link brings nothing to the other node; empty: it does, for all that is known.
  void set_trouble(std::string trouble) {
    const std::lock_guard lock(mutex_);
    trouble_ = std::move(trouble);
  }
  std::string trouble() const {
    const std::lock_guard lock(mutex_);
    return trouble_;
  }

 private:
  const std::string peer_;
  std::vector<RailNumbers> rails_;
  mutable std::mutex mutex_;
  std::vector<FlowRate> rates_;
  std::string trouble_;
};

}  // namespace braid
