// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "engine/link.h"
#include "loop/paced_tasks.h"
#include "net/flow.h"
#include "net/job_limits.h"
#include "net/link_board.h"
#include "net/transport.h"
#include "net/ucx_context.h"
#include "net/ucx_worker_maker.h"

namespace braid {

class FlowDriver;

// Written on one I/O loop, read from any thread.
struct IoCounters {
  std::atomic<uint64_t> strangers = 0;  // written on UCX's thread, too
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
  std::vector<std::shared_ptr<UcxContext>> rails;  // nullptr: it has had no carrier yet
  IoCounters& counters;
  LinkBoard& board;
  JobLimits& limits;
  PacedTasks& paced;  // UCX's calls for one flow may take a millisecond
  UcxWorkerMaker& workers;
  LoopTimeline* timeline;  // nullptr: nothing is noted
  uint16_t io_loop;
  uint32_t generations =
      0;  // of flows, counted over all links: an answer that is late fits nothing newer

  std::vector<bool> rails_up;  // as RailWatch knows them

  // Flows of a rail that is down are not opened. Where all are down there is nothing better, and
  // connections outlast a short outage.
  bool is_usable(uint16_t flow) const {
    const size_t rail = flow % rails.size();
    if (rails[rail] == nullptr) return false;
    if (rails_up[rail]) return true;
    for (size_t other = 0; other < rails.size(); ++other) {
      if (rails_up[other] && rails[other] != nullptr) return false;
    }
    return true;
  }
  // It has nothing on its way whose memory is not its own.
  void free_later(std::unique_ptr<Flow> flow) {
    flow->retire();
    paced.add(nullptr, [flow = std::shared_ptr<Flow>(std::move(flow))] {});
  }
  const std::string& rail_name_of(uint16_t flow) const {
    return options.rails[flow % rails.size()];
  }
  // On the flow's rail; see UcxWorkerMaker::make.
  void make_worker(const void* owner, uint16_t flow, const Sha256Digest& proof_key,
                   std::optional<std::vector<uint8_t>> remote_address,
                   std::function<void(UcxWorkerMaker::Made)> take, int segment_bytes = 0) {
    workers.make(owner, rails[flow % rails.size()], proof_key, std::move(remote_address),
                 std::move(take), segment_bytes);
  }
};

}  // namespace braid
