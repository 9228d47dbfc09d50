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

// What one daemon tells of one job and of its own node, for explain(). Field names are those of the
// JSON. What ends in _ns are nanoseconds of the node's own clock; nothing compares two nodes'
// clocks.
struct NodeFacts {
  // A step of the job's largest set of planned tensors; lists go by `ranks`. See StepTimes.
  struct Step {
    uint64_t step = 0;
    uint64_t step_ns = 0;
    std::vector<uint64_t> before_ns;
    std::vector<uint64_t> backward_ns;
    std::vector<uint64_t> wait_ns;
  };
  // A rank of this node that gave gradients which were not finite.
  struct NotFinite {
    uint32_t rank = 0;
    uint64_t steps = 0;
    uint64_t first_step = 0;
    uint64_t last_step = 0;
    std::string first_tensor;
  };
  // An operation of the job that has not ended on this node. It is one of another node's, too, if
  // tensor, step, collective and tensors are the same.
  struct Pending {
    std::string tensor;  // of a group, the first one
    uint64_t step = 0;
    std::string collective;           // "all-reduce"
    uint64_t tensors = 1;             // that are merged in it
    uint64_t bytes = 0;               // that one rank gives
    uint64_t since_ns = 0;            // that the first of this node's ranks has submitted it
    bool is_on_its_way = false;       // this node waits for no other one to be ready
    std::vector<uint32_t> submitted;  // ranks of this node that have submitted all of it
  };
  // One end of a message between two ranks, a send or a receive of a rank of this node, that has
  // not ended.
  struct Message {
    static constexpr int64_t kAnyRank = -1;

    bool is_send = false;
    uint32_t rank = 0;
    int64_t peer = kAnyRank;  // the other rank; a receive may take messages of any
    uint64_t tag = 0;
    uint64_t bytes = 0;
    uint64_t since_ns = 0;
    bool is_on_its_way = false;  // the other end is there, too
  };
  // One that has ended on this node.
  struct Ended {
    std::string tensor;
    uint64_t step = 0;
  };
  // One that has ended on this node, and that no plan has merged.
  struct Operation {
    std::string tensor;
    uint64_t step = 0;
    std::string collective;
    uint64_t ended_ago_ns = 0;
    std::vector<uint64_t> wait_ns;  // by `ranks`: from its submission to the end
  };
  // A rank's part of placed work, as it has told last; in seconds of an update, 0: not known. See
  // WorkLoad.
  struct Work {
    struct Item {
      std::string name;
      double seconds = 0;
      double least_seconds = 0;
    };
    uint32_t rank = 0;
    std::string work;
    uint64_t told_ago_ns = 0;
    uint64_t updates = 0;
    double interval_seconds = 0;
    double seconds = 0;
    double wait_seconds = 0;
    double input_wait_seconds = 0;
    double planned_seconds = 0;
    double makespan_seconds = 0;
    double bound_seconds = 0;
    std::vector<Item> items;  // the costliest of those that it computes
    uint64_t items_more = 0;  // that it computes, too
  };
  // That this node sends on, to nodes of any job.
  struct Flow {
    std::string peer;
    uint32_t io_loop = 0;
    uint32_t flow = 0;
    std::string rail;
    std::string state;  // "open", "opening", "failed"
    uint64_t bytes_sent = 0;
    double bytes_per_second = 0;   // 0: not known
    uint64_t segments_resent = 0;  // by TCP, of a native flow, since it was opened
    uint64_t failures = 0;
    std::string error;             // of the last failure
    uint64_t failed_ago_ns = 0;    // 0: never, as the next one
    uint64_t replaced_ago_ns = 0;  // because it was slow
  };

  std::string node;
  uint64_t at_ns = 0;  // when all of this was so
  uint32_t world_size = 0;
  uint32_t epoch = 0;
  std::string address;          // of the node
  std::vector<uint32_t> ranks;  // of this node, ascending
  std::vector<int64_t>
      pids;  // by `ranks`; 0: in a PID namespace that the daemon does not see; -1: it has left
  uint64_t planned_bytes = 0;  // of the set; 0: there is none
  std::string
      planner;  // of the jobs that this node coordinates; "first": none; empty: this is not one
  uint64_t last_step_ago_ns = 0;
  std::vector<Step> steps;  // the latest
  std::vector<NotFinite> not_finite;
  uint64_t operations_pending = 0;
  std::vector<Pending> pending;       // the oldest of them
  uint64_t messages_pending = 0;      // ends of messages
  std::vector<Message> messages;      // the oldest of them
  std::vector<Ended> ended;           // the latest
  std::vector<Operation> operations;  // the latest, of a job without planned tensors
  std::vector<Work> work;
  std::vector<uint32_t> held;  // ranks with submissions that wait until all nodes have a plan
  std::map<std::string, uint64_t> collectives;  // operations that have ended well, by collective
  uint64_t job_bytes = 0;                       // of their results
  uint64_t other_jobs_bytes = 0;                // of jobs of other processes
  std::vector<std::string> rails;               // that the daemon is configured for
  std::vector<std::string> rails_down;
  std::vector<Flow> flows;
  std::vector<GpuFacts> gpus;  // of the node; processes: those of this job
  // What all threads of the daemon have run, and have waited for a processor that was not free.
  uint64_t processor_ns = 0;
  uint64_t processor_wait_ns = 0;
};

// What all nodes told of one job at one moment.
struct JobFacts {
  std::string job;
  std::vector<NodeFacts> nodes;      // in ring order
  std::vector<std::string> missing;  // nodes that did not answer
};

std::string to_json(const NodeFacts& facts);
// A JSON array with one object a job: {"job": …, "nodes": […], "missing": […]}. Unknown fields are
// ignored and missing ones left at their defaults, so that tools and daemons of different versions
// meet. Errors say what is wrong with it.
Result<std::vector<JobFacts>> parse_job_facts(std::string_view json);

}  // namespace braid
