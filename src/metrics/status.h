// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "gpu/gpu_facts.h"

namespace braid {

// What `braidctl status` asks for: the daemon fills it in, to_json makes the StatusReply, braidctl
// reads it back. Field names are those of the JSON; docs/reference.md describes them.
struct DaemonStatus {
  struct Node {
    std::string name;
    std::string id;  // 16 hexadecimal digits: JSON numbers have too few
    std::string address;
  };
  struct Flow {
    std::string peer;
    std::string direction;  // "out": this node sends on it; "in"
    uint32_t io_loop = 0;
    uint32_t flow = 0;
    std::string rail;
    std::string state;  // "open", "opening", "failed"
    uint64_t bytes_sent = 0;
    uint64_t bytes_received = 0;
    uint64_t failures = 0;
    std::string error{};          // of the last failure; empty: there was none, or the flow is "in"
    double round_trip_ms = 0;     // from sending a chunk to its acknowledgement; 0: not known
    double bytes_per_second = 0;  // that it delivers, of a flow that is "out"; 0: not known
    // By TCP, of a native flow that is "out".
    double path_round_trip_ms = 0;  // without what keeps either daemon busy; 0: not known
    uint64_t segments_resent = 0;   // since it was opened
  };
  struct JobNode {
    std::string name;
    std::string address;
    std::vector<uint32_t> ranks;
    std::string rack{};  // empty: not known
  };
  struct LocalRank {
    uint32_t rank = 0;
    int64_t pid = 0;
    uint32_t uid = 0;
    uint64_t arena_memory_bytes = 0;  // that its input arenas hold
  };
  // A local rank's part of placed work, as its trainer has told it last: seconds of an update. 0:
  // not known.
  struct Work {
    uint32_t rank = 0;
    std::string work;
    uint64_t updates = 0;
    double interval_seconds = 0;
    double seconds = 0;
    double wait_seconds = 0;
    double planned_seconds = 0;
    double makespan_seconds = 0;
    double bound_seconds = 0;
  };
  // What a job's duels between its usual way and a rival have found.
  struct DuelFound {
    bool pays = false;  // the rival
    double gain = 0;    // the usual way's seconds / the rival's, in the last duel
    uint32_t duels = 0;
  };
  struct Job {
    std::string name;
    uint32_t epoch = 0;
    std::string state;
    uint32_t world_size = 0;
    uint32_t weight = 1;
    std::vector<JobNode> nodes;  // in ring order
    std::vector<LocalRank> local_ranks;
    uint64_t operations_done = 0;
    uint64_t steps_done = 0;
    uint64_t operations_pending = 0;
    uint64_t bytes = 0;
    uint64_t arena_memory_bytes = 0;        // of all local ranks
    uint64_t result_memory_bytes = 0;       // reserved for results
    uint64_t result_memory_used_bytes = 0;  // of it, what holds results now
    // Steps of all sets of planned tensors, since the job began here.
    uint64_t planned_steps = 0;
    double step_seconds = 0;     // that these steps took, together
    double exposed_seconds = 0;  // of it, what trainers waited
    std::vector<Work> work = {};
    DuelFound polling = {};    // before a sleep, if node.polling is adaptive
    DuelFound few_flows = {};  // one for each rail, for what is not planned
  };
  struct Peer {
    std::string name;
    std::string address;
    uint16_t port = 0;
  };

  struct Polling {
    std::string mode;    // node.polling
    double seconds = 0;  // that the loops have spent on it
  };

  struct Processor {
    double seconds = 0;       // that the daemon's threads have run
    double wait_seconds = 0;  // that they waited for a processor that was not free
  };

  std::string version;
  Node node;
  double uptime_seconds = 0;
  Polling polling;
  Processor processor;
  std::string transport;  // "UCX 1.13.1, tcp on eth0, 8 flows per link"
  std::vector<std::string> rails;
  std::vector<std::string> rails_down;  // of these
  std::vector<GpuFacts> gpus;           // of the node; processes: those that the asker may see
  double gpus_silent_seconds = 0;       // that NVIDIA's library does not answer; 0: it does
  std::vector<Flow> flows;
  std::vector<Job> jobs;
  uint32_t jobs_hidden = 0;  // of other users than who asked
  std::vector<Peer> peers;
  std::map<std::string, uint64_t> counters;  // what the metrics have, for those without Prometheus
};

std::string to_json(const DaemonStatus& status);
// A list of flows alone, as they stand in it.
std::string flows_json(const std::vector<DaemonStatus::Flow>& flows);
// Unknown fields are ignored and missing ones left at their defaults, so that tools and daemons of
// different versions meet.
Result<DaemonStatus> parse_status(std::string_view json);

}  // namespace braid
