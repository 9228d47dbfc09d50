// SPDX-License-Identifier: Apache-2.0
#include "explain/node_facts.h"

#include <nlohmann/json.hpp>

#include "gpu/gpu_facts_json.h"

namespace braid {

NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(NodeFacts::Step, step, step_ns, before_ns,
                                                backward_ns, wait_ns)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(NodeFacts::NotFinite, rank, steps, first_step,
                                                last_step, first_tensor)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(NodeFacts::Pending, tensor, step, collective,
                                                tensors, bytes, since_ns, is_on_its_way, submitted)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(NodeFacts::Message, is_send, rank, peer, tag, bytes,
                                                since_ns, is_on_its_way)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(NodeFacts::Ended, tensor, step)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(NodeFacts::Operation, tensor, step, collective,
                                                ended_ago_ns, wait_ns)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(NodeFacts::Work::Item, name, seconds, least_seconds)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(NodeFacts::Work, rank, work, told_ago_ns, updates,
                                                interval_seconds, seconds, wait_seconds,
                                                input_wait_seconds, planned_seconds,
                                                makespan_seconds, bound_seconds, items, items_more)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(NodeFacts::Flow, peer, io_loop, flow, rail, state,
                                                bytes_sent, bytes_per_second, segments_resent,
                                                failures, error, failed_ago_ns, replaced_ago_ns)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(
    NodeFacts, node, at_ns, world_size, epoch, address, ranks, pids, planned_bytes, planner,
    last_step_ago_ns, steps, not_finite, operations_pending, pending, messages_pending, messages,
    ended, operations, work, held, collectives, job_bytes, other_jobs_bytes, rails, rails_down,
    flows, gpus, processor_ns, processor_wait_ns)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(JobFacts, job, nodes, missing)

namespace {

// A step without the times of some rank is of no use.
Status check(const NodeFacts& facts) {
  const size_t ranks = facts.ranks.size();
  for (const NodeFacts::Step& step : facts.steps) {
    if (step.before_ns.size() == ranks && step.backward_ns.size() == ranks &&
        step.wait_ns.size() == ranks) {
      continue;
    }
    return make_status(StatusCode::Protocol,
                       "node '{}': step {}: there are {} ranks, but {}, {} and {} times",
                       facts.node, step.step, ranks, step.before_ns.size(), step.backward_ns.size(),
                       step.wait_ns.size());
  }
  for (const NodeFacts::Operation& one : facts.operations) {
    if (one.wait_ns.size() == ranks) continue;
    return make_status(StatusCode::Protocol,
                       "node '{}': {} of '{}' {}: there are {} ranks, but {} times", facts.node,
                       one.collective, one.tensor, one.step, ranks, one.wait_ns.size());
  }
  return Status::ok();
}

}  // namespace

std::string to_json(const NodeFacts& facts) {
  // Names come from trainers and may be no UTF-8.
  return nlohmann::json(facts).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

Result<std::vector<JobFacts>> parse_job_facts(std::string_view json) {
  std::vector<JobFacts> jobs;
  try {
    jobs = nlohmann::json::parse(json).get<std::vector<JobFacts>>();
  } catch (const nlohmann::json::exception& error) {
    return make_status(StatusCode::Protocol, "braidctl does not understand the nodes' answers: {}",
                       error.what());
  }
  for (const JobFacts& job : jobs) {
    for (const NodeFacts& node : job.nodes) BRAID_RETURN_IF_ERROR(check(node));
  }
  return jobs;
}

}  // namespace braid
