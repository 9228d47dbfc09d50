// SPDX-License-Identifier: Apache-2.0
#include "telling/job_status.h"

#include <nlohmann/json.hpp>

namespace braid {
namespace {

DaemonStatus::DuelFound found_of(const Job& job, proto::DuelSubject subject) {
  const OperationDuel::Finding& finding = job.duels().finding(subject);
  return {finding.pays, finding.gain, finding.duels};
}

}  // namespace

DaemonStatus::Job job_status(const Job& job) {
  const Membership& membership = job.membership();
  DaemonStatus::Job status;
  status.name = membership.name;
  status.epoch = membership.epoch;
  status.weight = membership.weight;
  status.state = job.is_starting() ? "starting" : job.is_running() ? "running" : "closed";
  status.world_size = job.world_size();
  for (const MemberNode& node : membership.nodes)
    status.nodes.push_back({node.peer.name, node.peer.address, node.ranks, node.rack});
  for (size_t i = 0; i < job.sessions().size(); ++i) {
    const Session* session = job.sessions()[i];
    if (session == nullptr) continue;
    const uint64_t bytes = job.arena_memory().bytes_of(i);
    status.local_ranks.push_back(
        {membership.local_ranks[i], session->credentials().pid, session->credentials().uid, bytes});
    status.arena_memory_bytes += bytes;
  }
  for (const WorkLoad& load : job.numbers().work.loads()) {
    status.work.push_back({load.rank, load.work, load.updates, load.interval_seconds, load.seconds,
                           load.wait_seconds, load.planned_seconds, load.makespan_seconds,
                           load.bound_seconds});
  }
  status.polling = found_of(job, proto::DuelSubject::Polling);
  status.few_flows = found_of(job, proto::DuelSubject::Flows);
  if (job.operations() == nullptr) return status;
  status.operations_done = job.operations()->log().operations_done();
  status.steps_done = job.operations()->log().steps_done();
  status.operations_pending = job.operations()->pending();
  status.bytes = job.operations()->log().bytes_done();
  status.result_memory_bytes = job.results().reserved_bytes();
  status.result_memory_used_bytes = job.results().used_bytes();
  const JobNumbers& numbers = job.numbers();
  status.planned_steps = numbers.steps.get();
  status.step_seconds = static_cast<double>(numbers.step_ns.get()) * 1e-9;
  status.exposed_seconds = static_cast<double>(numbers.exposed_ns.get()) * 1e-9;
  return status;
}

std::string job_tuning(const Job& job, const std::optional<std::string>& tuning) {
  using Json = nlohmann::ordered_json;
  Json settings;
  if (const auto own = job.plans().settings()) {
    settings = {{"flows_per_link", own->flows},
                {"streams", own->streams},
                {"unit_bytes", own->unit_bytes},
                {"chunk_bytes", own->chunk_bytes},
                {"window_bytes", own->window_bytes},
                {"direct_bytes", own->direct_bytes},
                {"two_hops_bytes", own->two_hops_bytes},
                {"halving_bytes", own->halving_bytes},
                {"hierarchical", own->is_hierarchical ? 2 : 1}};
  }
  // Names come from trainers and may be no UTF-8.
  return Json({{"job", job.name()},
               {"coordinator", job.coordinator().name},
               {"is_coordinator", tuning.has_value()},
               {"settings", std::move(settings)},
               {"tunings", tuning ? Json::parse(*tuning, nullptr, false) : Json()}})
      .dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace braid
