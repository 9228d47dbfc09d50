// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace braid {

// What one daemon tells of one job and of its own node, for explain(). Field names are those of the
// JSON. What ends in _ns are nanoseconds of the node's own clock; nothing compares two nodes'
// clocks.
struct NodeFacts {
  // A step of the job's largest set of planned tensors; lists go by `ranks`. See StepTimes.
  struct Step {
    uint64_t step = 0;
    uint64_t step_ns = 0;
    uint64_t exposed_ns = 0;
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
  // That this node sends on, to nodes of any job.
  struct Flow {
    std::string peer;
    uint32_t io_loop = 0;
    uint32_t flow = 0;
    std::string rail;
    std::string state;  // "open", "opening", "failed"
    uint64_t bytes_sent = 0;
    double bytes_per_second = 0;  // 0: not known
    uint64_t failures = 0;
    std::string error;             // of the last failure
    uint64_t failed_ago_ns = 0;    // 0: never, as the next one
    uint64_t replaced_ago_ns = 0;  // because it was slow
  };

  std::string node;
  uint64_t at_ns = 0;  // when all of this was so
  uint32_t world_size = 0;
  std::vector<uint32_t> ranks;  // of this node, ascending
  uint64_t planned_bytes = 0;   // of the set; 0: there is none
  std::string
      planner;  // of the jobs that this node coordinates; "first": none; empty: this is not one
  uint64_t last_step_ago_ns = 0;
  std::vector<Step> steps;  // the latest
  std::vector<NotFinite> not_finite;
  uint64_t operations = 0;  // of the job, that have ended well
  uint64_t operations_pending = 0;
  uint64_t job_bytes = 0;          // of their results
  uint64_t other_jobs_bytes = 0;   // of jobs of other processes
  std::vector<std::string> rails;  // that the daemon is configured for
  std::vector<std::string> rails_down;
  std::vector<Flow> flows;
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
