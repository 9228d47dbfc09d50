// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "control/flow_keys.h"
#include "engine/link.h"
#include "loop/paced_tasks.h"
#include "net/flow.h"
#include "net/flow_channel.h"
#include "net/job_limits.h"
#include "net/link_board.h"
#include "net/transport.h"

namespace braid {

class FlowDriver;

// Written on one I/O loop, read from any thread.
struct IoCounters {
  std::atomic<uint64_t> strangers = 0;  // UCX's thread writes it, too
  std::atomic<uint64_t> bytes_sent = 0;
  std::atomic<uint64_t> bytes_received = 0;
  std::atomic<uint64_t> chunks_sent = 0;
  std::atomic<uint64_t> chunks_received = 0;
  std::atomic<uint64_t> chunks_resent = 0;
  std::atomic<uint64_t> chunks_sent_twice = 0;
  std::atomic<uint64_t> chunks_rejected = 0;
  std::atomic<uint64_t> flow_failures = 0;
  std::atomic<uint64_t> flows_silent = 0;
  std::atomic<uint64_t> flows_replaced = 0;
  std::atomic<uint64_t> flows_open = 0;     // both ways
  std::atomic<uint64_t> flows_opening = 0;  // outgoing
  std::atomic<uint64_t> flows_failed = 0;   // outgoing, until they are opened again
};

// What all flows of one I/O loop share.
struct IoContext {
  Loop& loop;
  FlowDriver& driver;
  ChunkSink& sink;
  const TransportOptions& options;
  IoCounters& counters;
  LinkBoard& board;
  JobLimits& limits;
  PacedTasks& paced;  // UCX's calls for one flow may take a millisecond
  FlowChannels& channels;
  LoopTimeline* timeline;  // nullptr: nothing is noted
  uint16_t io_loop;
  uint32_t generations =
      0;  // of flows, counted over all links: an answer that is late fits nothing newer

  std::vector<bool> rails_up;  // as RailWatch knows them

  // Flows of a rail that is down are not opened. Where all are down there is nothing better, and
  // connections outlast a short outage.
  bool is_usable(uint16_t flow) const {
    const size_t rail = rail_of(flow);
    if (!channels.has_rail(rail)) return false;
    if (rails_up[rail]) return true;
    for (size_t other = 0; other < rails_up.size(); ++other) {
      if (rails_up[other] && channels.has_rail(other)) return false;
    }
    return true;
  }
  // It has nothing on its way whose memory is not its own.
  void free_later(std::unique_ptr<Flow> flow) {
    flow->retire();
    paced.add(nullptr, [flow = std::shared_ptr<Flow>(std::move(flow))] {});
  }
  // For ChannelRequest.
  std::optional<Sha256Digest> cipher_key_of(const FlowKeys& keys) const {
    return options.encrypts ? std::optional(keys.cipher_key) : std::nullopt;
  }
  size_t rail_of(uint16_t flow) const { return flow % options.rails.size(); }
  const std::string& rail_name_of(uint16_t flow) const { return options.rails[rail_of(flow)]; }
};

}  // namespace braid
