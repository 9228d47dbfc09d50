// SPDX-License-Identifier: Apache-2.0
// What `braidctl status`, `braidctl plan`, `braidctl tune`, metrics and the log are told of a job.
#include <nlohmann/json.hpp>

#include "base/log.h"
#include "job/job.h"

namespace braid {

ArenaMemory::OfRanks Job::arenas() const {
  ArenaMemory::OfRanks arenas;
  for (const Session* session : sessions_)
    arenas.push_back(session == nullptr ? nullptr : session->arenas());
  return arenas;
}

DaemonStatus::Job Job::status() {
  DaemonStatus::Job status;
  status.name = membership_.name;
  status.epoch = membership_.epoch;
  status.weight = membership_.weight;
  switch (state_) {
    case State::Preparing:
    case State::Waiting:
      status.state = "starting";
      break;
    case State::Running:
      status.state = "running";
      break;
    case State::Closed:
      status.state = "closed";
      break;
  }
  status.world_size = membership_.ring->world_size;
  for (const MemberNode& node : membership_.nodes)
    status.nodes.push_back({node.peer.name, node.peer.address, node.ranks, node.rack});
  for (size_t i = 0; i < sessions_.size(); ++i) {
    if (sessions_[i] == nullptr) continue;
    const ClientCredentials& who = sessions_[i]->credentials();
    const uint64_t bytes = arena_memory_.bytes_of(i);
    status.local_ranks.push_back({membership_.local_ranks[i], who.pid, who.uid, bytes});
    status.arena_memory_bytes += bytes;
  }
  if (!is_closed()) arena_memory_.look();
  if (operations_ == nullptr) return status;
  status.operations_done = operations_->operations_done();
  status.steps_done = operations_->steps_done();
  status.operations_pending = operations_->pending();
  status.bytes = operations_->bytes_done();
  status.result_memory_bytes = memory_->reserved_bytes();
  status.result_memory_used_bytes = memory_->used_bytes();
  status.planned_steps = numbers_->steps.get();
  status.step_seconds = static_cast<double>(numbers_->step_ns.get()) * 1e-9;
  status.exposed_seconds = static_cast<double>(numbers_->exposed_ns.get()) * 1e-9;
  return status;
}

void Job::show_memory() {
  arena_memory_.look();
  numbers_->result_memory_bytes.set(memory_->reserved_bytes());
}

PlanBook::JsonMaker Job::plans_json(const PlanBook::Circumstances& circumstances,
                                    std::optional<std::vector<GuardReading>> readings) const {
  return plans_.json_maker(
      circumstances, {membership_.sample_every_steps, coordinator_.name, std::move(readings)});
}

std::string Job::tuning_json(const std::optional<std::string>& tuning) const {
  using Json = nlohmann::ordered_json;
  Json settings;
  if (const auto own = plans_.settings()) {
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
  return Json({{"job", membership_.name},
               {"coordinator", coordinator_.name},
               {"is_coordinator", tuning.has_value()},
               {"settings", std::move(settings)},
               {"tunings", tuning ? Json::parse(*tuning, nullptr, false) : Json()}})
      .dump(-1, ' ', false, Json::error_handler_t::replace);
}

void Job::tell_progress() {
  if (!progress_ || services_.progress_seconds == nullptr || *services_.progress_seconds == 0)
    return;
  const auto line = progress_->take_line(uint64_t{*services_.progress_seconds} * 1'000'000'000,
                                         services_.clock.now_ns());
  if (line) BRAID_LOG_INFO(LogFields{.job = {name(), user_}}, "job '{}' {}", name(), *line);
}

// Of a job that has run.
void Job::tell_end(std::string_view how) {
  if (!progress_ || services_.progress_seconds == nullptr || *services_.progress_seconds == 0)
    return;
  const std::string line = progress_->summary(how, services_.clock.now_ns());
  BRAID_LOG_INFO(LogFields{.job = {name(), user_}}, "job '{}' {}", name(), line);
}

}  // namespace braid
