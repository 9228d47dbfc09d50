// SPDX-License-Identifier: Apache-2.0
#include "operation/operation_table.h"

#include <utility>

namespace braid {

OperationTable::OperationTable(JobOnNode job, std::shared_ptr<ResultMemory> memory,
                               OperationServices services)
    : job_(std::move(job)),
      memory_(std::move(memory)),
      services_(std::move(services)),
      maker_(job_, memory_),
      log_(job_, entries_, services_.counters, services_.numbers, services_.timeline),
      readiness_(job_),
      has_left_(job_.local_ranks.size(), false),
      leave_reasons_(job_.local_ranks.size()) {}

Status OperationTable::submit(const Submission& submission, const PlannedTensor& planned) {
  OperationKey key{job_.key, submission.tensor, submission.step};
  if (planned.form != nullptr && planned.form->is_merged()) {
    const OperationKey own = key;
    key.tensor = planned.form->group->members.front().tensor;
    members_.try_emplace(own, EntryMember{key, planned.member});
  }
  const auto [position, is_new] = entries_.try_emplace(key, job_, key, submission, planned.form);
  Entry& entry = position->second;
  if (is_new) log_.on_first_submission();
  BRAID_RETURN_IF_ERROR(entry.submitted.add(submission, planned));
  if (entry.submitted.is_complete()) return place(entry);
  if (const auto leaver = entry.submitted.first_without(has_left_))
    return leaver_without(entry.submitted, *leaver);
  return Status::ok();
}

Status OperationTable::place(Entry& entry) {
  const GatheredOperation& submitted = entry.submitted;
  BRAID_RETURN_IF_ERROR(maker_.check(submitted));
  if (submitted.coded() != nullptr && submitted.form().is_sampled_in(submitted.key().step))
    entry.gauge = std::make_shared<CodecGauge>();
  Operation operation = maker_.make(submitted, entry.gauge);
  BRAID_RETURN_IF_ERROR(place_result(entry, operation));
  find_awaited(entry, operation);
  entry.state = State::Placed;
  if (placed_.empty() && can_start(operation, entry)) return start(entry, std::move(operation));
  placed_.push_back(std::move(operation));
  return Status::ok();
}

Status OperationTable::place_result(Entry& entry, Operation& operation) {
  GatheredOperation& submitted = entry.submitted;
  if (submitted.exchange() == nullptr) {
    entry.result_bytes =
        result_bytes(operation.collective, operation.dtype, operation.count, job_.ring->world_size);
    BRAID_RETURN_IF_ERROR(allocate(entry));
    operation.result = memory_->data() + entry.result_offset;
    return Status::ok();
  }
  const CheckedNumber bytes = submitted.lay_out_results();
  // What its ranks expect of other nodes nobody has compared yet.
  if (!bytes.is_at_most(memory_->size())) {
    return make_status(StatusCode::ResourceExhausted,
                       "job '{}': no room for the result of {}: its ranks expect more than the {} "
                       "bytes of results that client.arena_bytes_max allows",
                       job_.name, submitted.describe(), memory_->size());
  }
  entry.result_bytes = bytes.value_or(0);
  BRAID_RETURN_IF_ERROR(allocate(entry));
  std::vector<uint8_t*> results;
  for (const GatheredOperation::Part& part : submitted.parts())
    results.push_back(memory_->data() + entry.result_offset + part.result_start);
  operation.exchange = submitted.exchange()->place(results);
  return Status::ok();
}

void OperationTable::find_awaited(Entry& entry, const Operation& operation) const {
  entry.is_early = is_early(operation);
  entry.route = operation.route;
  if (entry.is_early) return;
  if (const NodeExchange* const exchange = entry.submitted.exchange(); exchange != nullptr) {
    entry.awaited = exchange->given_to(job_.ring->routes->exchange.targets);
  } else if (entry.route != nullptr) {
    entry.awaited = entry.route->targets;
  } else {
    entry.awaited = {(job_.ring->self + 1) % job_.ring->nodes};
  }
}

Status OperationTable::allocate(Entry& entry) {
  auto placed = memory_->allocate(entry.result_bytes);
  if (!placed) {
    return placed.status().with_context(fmt::format("job '{}': no room for the result of {}",
                                                    job_.name, entry.submitted.describe()));
  }
  entry.result_offset = *placed;
  return Status::ok();
}

// Whether it sends to nodes to which no links may lead yet.
bool OperationTable::needs_all(const Operation& operation) const {
  if (job_.ring->nodes == 1) return false;
  const BasicRoutes& routes = *job_.ring->routes;
  return operation.exchange != nullptr ||
         (operation.hop != nullptr && (operation.route == &routes.two_hops ||
                                       operation.route == &routes.two_hops_reduce_scatter));
}

bool OperationTable::can_start(const Operation& operation, const Entry& entry) const {
  return (job_.ring->nodes > 1 || running_ < kLocalRunningMax) &&
         memory_->has_memory(entry.result_offset, entry.result_bytes) &&
         entry.submitted.may_use_kept() && (!needs_all(operation) || services_.reach_all());
}

Status OperationTable::on_memory(const Status& growth) {
  while (!placed_.empty()) {
    Entry& entry = entries_.at(placed_.front().key);
    if (!growth) {
      return growth.with_context(fmt::format("job '{}': no room for the result of {}", job_.name,
                                             entry.submitted.describe()));
    }
    if (!can_start(placed_.front(), entry)) break;
    Operation operation = std::move(placed_.front());
    placed_.pop_front();
    BRAID_RETURN_IF_ERROR(start(entry, std::move(operation)));
  }
  return Status::ok();
}

Status OperationTable::start(Entry& entry, Operation operation) {
  const OperationKey& key = entry.submitted.key();
  entry.state = State::Running;
  ++running_;
  entry.submitted.begin_using_kept();
  // What halves take says nothing of all-reduces.
  if (operation.halves == Halves::Both) services_.observer.on_start(key, entry.result_bytes);
  // With one node there is nobody to wait for, and a direct one begins at once.
  if (job_.ring->nodes == 1 || entry.is_early) note_go(entry);
  // The engine must know the operation before others may send for it.
  BRAID_RETURN_IF_ERROR(check_taken(services_.engines.start(std::move(operation))));
  if (job_.ring->nodes == 1) return Status::ok();
  if (!entry.is_early) BRAID_RETURN_IF_ERROR(tell_sources(entry));
  if (!entry.is_early && entry.awaited.empty())
    BRAID_RETURN_IF_ERROR(go(entry));  // it sends nothing
  const auto words = readiness_.take(key);
  if (!words) return words.status();
  for (const Readiness::Word& word : *words) BRAID_RETURN_IF_ERROR(take_readiness(entry, word));
  return Status::ok();
}

Status OperationTable::tell_sources(Entry& entry) {
  entry.ready_told = Entry::ReadyTold::Yes;
  const OperationKey& key = entry.submitted.key();
  const Signature& signature = entry.submitted.signature();
  const Ring& ring = *job_.ring;
  if (const NodeExchange* const exchange = entry.submitted.exchange(); exchange != nullptr) {
    for (const uint32_t source : exchange->expected_from(ring.routes->exchange.sources))
      BRAID_RETURN_IF_ERROR(services_.send_ready(source, key, exchange->said_to(source)));
    return Status::ok();
  }
  if (entry.route == nullptr)
    return services_.send_ready((ring.self + ring.nodes - 1) % ring.nodes, key, signature);
  for (const uint32_t source : entry.route->sources)
    BRAID_RETURN_IF_ERROR(services_.send_ready(source, key, signature));
  return Status::ok();
}

// The operation runs.
Status OperationTable::take_readiness(Entry& entry, const Readiness::Word& word) {
  BRAID_RETURN_IF_ERROR(readiness_.check(entry.submitted, word, true));
  if (std::erase(entry.awaited, word.place) == 0 || !entry.awaited.empty()) return Status::ok();
  return go(entry);
}

void OperationTable::note_go(Entry& entry) {
  services_.observer.on_go(entry.submitted.key());
  entry.is_going = true;
  entry.went_ns = services_.now_ns();
  log_.on_go(entry);
}

Status OperationTable::go(Entry& entry) {
  note_go(entry);
  return check_taken(services_.engines.go(entry.submitted.key()));
}

Status OperationTable::check_taken(bool is_taken) const {
  if (is_taken) return Status::ok();
  return make_status(StatusCode::ResourceExhausted,
                     "job '{}': too many operations are in flight on this node", job_.name);
}

Status OperationTable::tell_readiness() {
  for (auto& [key, entry] : entries_) {
    if (entry.state != State::Running || entry.ready_told == Entry::ReadyTold::Yes) continue;
    if (std::exchange(entry.ready_told, Entry::ReadyTold::SeenRunning) != Entry::ReadyTold::No)
      BRAID_RETURN_IF_ERROR(tell_sources(entry));
  }
  return Status::ok();
}

Status OperationTable::on_node_ready(uint32_t place, const OperationKey& key,
                                     const Signature& signature) {
  const auto position = entries_.find(key);
  const bool is_known = position != entries_.end();
  if (is_known && position->second.state == State::Published)
    return Status::ok();  // said twice, or of an early one that is over here
  if (is_known && position->second.state == State::Running)
    return take_readiness(position->second, {place, signature});
  if (!is_known && log_.has_ended(key)) return Status::ok();
  for (uint32_t i = 0; i < has_left_.size(); ++i) {
    if (has_left_[i] && !(is_known && position->second.submitted.has(i)))
      return leaver_apart(i, signature);
  }
  if (is_known) {
    BRAID_RETURN_IF_ERROR(readiness_.check(position->second.submitted, {place, signature},
                                           position->second.state != State::Gathering));
  }
  return readiness_.keep(key, {place, signature});
}

Status OperationTable::on_rank_left(uint32_t local_rank, const std::string& reason) {
  has_left_[local_rank] = true;
  leave_reasons_[local_rank] = reason;
  for (const auto& [key, entry] : entries_) {
    if (!entry.submitted.has(local_rank)) return leaver_without(entry.submitted, local_rank);
  }
  for (const auto& [key, words] : readiness_.kept()) {
    const auto position = entries_.find(key);
    if (position == entries_.end() || !position->second.submitted.has(local_rank))
      return leaver_apart(local_rank, words.front().signature);
  }
  // A rank that has left gives back all results.
  for (auto entry = entries_.begin(); entry != entries_.end();) {
    const auto current = entry++;
    if (current->second.state != State::Published) continue;
    current->second.submitted.release_all(local_rank);
    forget_if_over(current);
  }
  return Status::ok();
}

Status OperationTable::leaver_without(const GatheredOperation& submitted,
                                      uint32_t local_rank) const {
  return make_status(StatusCode::JobFailed, "job '{}': {} without submitting {}", job_.name,
                     describe_leaver(local_rank), submitted.describe());
}

Status OperationTable::leaver_apart(uint32_t local_rank, const Signature& signature) const {
  return make_status(StatusCode::JobFailed,
                     "job '{}': {}, but another node has submitted another operation: {}",
                     job_.name, describe_leaver(local_rank), to_string(signature));
}

std::string OperationTable::describe_leaver(uint32_t local_rank) const {
  const std::string& reason = leave_reasons_[local_rank];
  return fmt::format("rank {} left the job{}", job_.local_ranks[local_rank],
                     reason.empty() ? std::string() : fmt::format(" ({})", reason));
}

void OperationTable::on_done(const OperationKey& key) {
  const auto position = entries_.find(key);
  if (position == entries_.end() || position->second.state != State::Running) return;
  services_.observer.on_done(key);
  Entry& entry = position->second;
  const uint64_t now_ns = services_.now_ns();
  log_.on_end(entry, now_ns);
  entry.state = State::Published;
  --running_;
  entry.submitted.end_using_kept();
  if (entry.gauge != nullptr) services_.observer.on_loss(key, entry.gauge->loss());
  publish(entry);
  forget_if_over(position);
  services_.on_end(now_ns);
  if (placed_.empty()) return;
  if (const Status started = on_memory(Status::ok()); !started) services_.fail(started);
}

void OperationTable::publish(Entry& entry) {
  for (uint32_t i = 0; i < job_.local_ranks.size(); ++i) {
    if (has_left_[i]) {
      entry.submitted.release_all(i);
    } else if (services_.sinks[i] != nullptr) {
      entry.submitted.publish(i, entry.result_offset, entry.result_bytes, *services_.sinks[i]);
    }
  }
}

void OperationTable::on_retired(const OperationKey& key) {
  const auto position = entries_.find(key);
  if (position == entries_.end()) return;
  position->second.is_retired = true;
  forget_if_over(position);
}

Status OperationTable::release(uint32_t local_rank, const OperationKey& key) {
  const auto member = members_.find(key);
  const bool is_member = member != members_.end();
  const auto position = entries_.find(is_member ? member->second.entry : key);
  if (position == entries_.end()) return Status::ok();
  Entry& entry = position->second;
  if (entry.state != State::Published) {
    return make_status(StatusCode::Protocol,
                       "job '{}': rank {} gave back the result of {} before it was done", job_.name,
                       job_.local_ranks[local_rank], entry.submitted.describe());
  }
  entry.submitted.release(local_rank, is_member ? member->second.member : 0);
  forget_if_over(position);
  return Status::ok();
}

void OperationTable::forget_if_over(OperationEntries::iterator position) {
  const Entry& entry = position->second;
  if (entry.state != State::Published || !entry.is_retired || !entry.submitted.is_released())
    return;
  memory_->free(entry.result_offset);
  if (const OperationForm& form = entry.submitted.form(); form.is_merged()) {
    for (const TensorGroup::Member& member : form.group->members)
      members_.erase({job_.key, member.tensor, position->first.step});
  }
  entries_.erase(position);
}

std::optional<OperationTable::Overdue> OperationTable::take_overdue(uint64_t now_ns) {
  Entry* earliest = nullptr;
  const auto deadline_ns = [](const Entry& entry) { return entry.submitted.times().deadline_ns; };
  for (auto& [key, entry] : entries_) {
    if (entry.state == State::Published || entry.is_reported_overdue || now_ns < deadline_ns(entry))
      continue;
    if (earliest == nullptr || deadline_ns(entry) < deadline_ns(*earliest)) earliest = &entry;
  }
  if (earliest == nullptr) return std::nullopt;
  earliest->is_reported_overdue = true;
  const GatheredOperation& submitted = earliest->submitted;
  return Overdue{submitted.key(), submitted.times().timeout_ms,
                 fmt::format("job '{}': {}", job_.name, submitted.describe())};
}

}  // namespace braid
