// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "base/status.h"
#include "engine/link.h"

namespace braid {

// How the operations of a job travel; what a tuner chooses. The parameters that Lin et al. tune
// ("AIACC-Training", ICDCS 2022: streams, connections, granularity) and those that come with units,
// chunks and windows.
struct TransferSettings {
  // What all nodes must have the same of, for one operation.
  uint64_t unit_bytes = 8 << 20;
  uint32_t chunk_bytes = 128 << 10;
  // All-reduces of up to so much are direct, larger ones go by two hops, still larger ones by
  // halves, where any do; all others by racks, where they can.
  uint64_t direct_bytes = 32 << 10;
  uint64_t two_hops_bytes = 0;
  uint64_t halving_bytes = 256 << 10;
  bool is_hierarchical = true;
  // What each node keeps to by itself.
  uint32_t streams = 4;               // units in flight per job and I/O loop
  uint32_t flows = 8;                 // of each link, per I/O loop
  uint32_t window_bytes = 512 << 10;  // unacknowledged, per flow

  bool operator==(const TransferSettings&) const = default;
};

// What a job may take on one I/O loop; the node-local part of its settings.
struct JobShare {
  uint32_t streams = 0;  // 0: EngineOptions::streams
  LinkLimits link;
  bool operator==(const JobShare&) const = default;
};

// Whether a node can work with them: InvalidArgument names what cannot be. `chunk_bytes_max`: the
// largest that the transport is set up for.
Status check(const TransferSettings& settings, uint32_t chunk_bytes_max);

}  // namespace braid
