// SPDX-License-Identifier: Apache-2.0
#include "operation/operation_table.h"

#include <algorithm>
#include <utility>

#include "base/clock.h"
#include "base/hash.h"
#include "operation/algorithm_choice.h"

namespace braid {
namespace {

// A barrier is an all-reduce of one byte that nobody looks at.
alignas(64) constexpr uint8_t kBarrierInput[64] = {};

}  // namespace

OperationTable::OperationTable(std::string job_name, uint64_t job_key,
                               std::shared_ptr<const Ring> ring, std::vector<uint32_t> local_ranks,
                               std::shared_ptr<ResultMemory> memory, OperationServices services)
    : job_name_(std::move(job_name)),
      job_key_(job_key),
      hash_(job_key),
      ring_(std::move(ring)),
      local_ranks_(std::move(local_ranks)),
      memory_(std::move(memory)),
      services_(std::move(services)),
      has_left_(local_ranks_.size(), false),
      leave_reasons_(local_ranks_.size()) {}

Status OperationTable::submit(const Submission& submission) {
  OperationKey key{job_key_, submission.tensor, submission.step};
  if (submission.group != nullptr) {
    const OperationKey own = key;
    key.tensor = submission.group->members.front().tensor;
    members_.try_emplace(own, EntryMember{key, submission.member});
  }
  Entry& entry = entries_[key];
  if (entry.parts.empty()) {
    entry.group = submission.group;
    entry.settings = submission.settings;
    entry.urgency = submission.urgency;
    entry.first_element = submission.first_element;
    if (ring_->nodes > 1) entry.coded = submission.coded;
    if (entry.coded != nullptr && submission.is_sampled)
      entry.gauge = std::make_shared<CodecGauge>();
    entry.parts.resize(local_ranks_.size() *
                       (entry.group == nullptr ? 1 : entry.group->members.size()));
    entry.shard = submission.shard;
    entry.first_in_set = submission.first_in_set;
    if (entry.shard != nullptr) entry.updates.resize(members(entry));
    entry.signature = submission.signature;
    entry.name = entry.group == nullptr ? submission.name : entry.group->members.front().name;
    entry.first_rank = local_ranks_[submission.local_rank];
    entry.deadline_ns = submission.deadline_ns;
    entry.timeout_ms = submission.timeout_ms;
    entry.plan = submission.plan;
    entry.first_submitted_ns = submission.submitted_ns;
    set_unfinished(unfinished_ + 1);
  }
  BRAID_RETURN_IF_ERROR(add_part(key, entry, submission));
  if (entry.submitted == entry.parts.size()) return place(key, entry);
  for (uint32_t i = 0; i < has_left_.size(); ++i) {
    if (has_left_[i] && !has_submitted(entry, i)) {
      return make_status(StatusCode::JobFailed, "job '{}': {} without submitting {}", job_name_,
                         describe_leaver(i), describe(entry, key));
    }
  }
  return Status::ok();
}

Status OperationTable::add_part(const OperationKey& key, Entry& entry,
                                const Submission& submission) {
  const uint32_t rank = local_ranks_[submission.local_rank];
  // First: only what has the entry's group has a place in it.
  if (submission.signature != entry.signature || submission.group != entry.group) {
    return make_status(
        StatusCode::Mismatch,
        "job '{}': ranks disagree about '{}' step {}: rank {} says {}, rank {} says {}", job_name_,
        *submission.name, key.step, entry.first_rank, to_string(entry.signature), rank,
        to_string(submission.signature));
  }
  BRAID_RETURN_IF_ERROR(check_member(entry, submission));
  LocalPart& part = entry.parts[submission.local_rank * members(entry) + submission.member];
  if (part.is_submitted) {
    return make_status(StatusCode::InvalidArgument,
                       "job '{}': rank {} submitted '{}' step {} twice", job_name_, rank,
                       *submission.name, submission.step);
  }
  if (entry.shard != nullptr) BRAID_RETURN_IF_ERROR(check_update(key, entry, submission));
  part.is_submitted = true;
  part.submitted_ns = submission.submitted_ns;
  part.ticket = submission.ticket;
  part.input = submission.input;
  ++entry.submitted;
  entry.submitted_ns = std::max(entry.submitted_ns, submission.submitted_ns);
  if (submission.deadline_ns < entry.deadline_ns) {
    entry.deadline_ns = submission.deadline_ns;
    entry.timeout_ms = submission.timeout_ms;
  }
  if (submission.splits == nullptr) return Status::ok();
  return add_to_exchange(key, entry, submission);
}

// Of a group the plan says how much is read of each rank's input, not the rank that submits it.
Status OperationTable::check_member(const Entry& entry, const Submission& submission) const {
  if (entry.group == nullptr) return Status::ok();
  const TensorGroup::Member& member = entry.group->members[submission.member];
  const bool has_input = submission.update.action != UpdateAction::Fetch;
  const uint64_t bytes = has_input ? member.count * element_bytes(entry.group->dtype) : 0;
  if (member.tensor == submission.tensor && bytes == submission.input_bytes) return Status::ok();
  return make_status(StatusCode::Mismatch,
                     "job '{}': rank {} submitted {} bytes of '{}' step {}, the plan has '{}' of "
                     "{} bytes in its place",
                     job_name_, local_ranks_[submission.local_rank], submission.input_bytes,
                     *submission.name, submission.step, *member.name, bytes);
}

bool OperationTable::has_submitted(const Entry& entry, uint32_t local_rank) const {
  const auto first = entry.parts.begin() + static_cast<int64_t>(local_rank * members(entry));
  return std::all_of(first, first + static_cast<int64_t>(members(entry)),
                     [](const LocalPart& part) { return part.is_submitted; });
}

OperationInput OperationTable::input_of(const Entry& entry, uint32_t local_rank) const {
  const LocalPart* parts = &entry.parts[local_rank * members(entry)];
  if (entry.group == nullptr) return {parts->input};
  OperationInput input;
  for (size_t i = 0; i < entry.group->members.size(); ++i) {
    const uint64_t count = entry.group->members[i].count;
    input.append(parts[i].input, count * element_bytes(entry.group->dtype));
  }
  return input;
}

Status OperationTable::place(const OperationKey& key, Entry& entry) {
  const bool is_barrier = entry.signature.collective == Collective::Barrier;
  Operation operation;
  operation.key = key;
  operation.collective = is_barrier ? Collective::AllReduce : entry.signature.collective;
  operation.dtype = is_barrier ? DataType::Uint8 : entry.signature.dtype;
  operation.reduction = is_barrier ? Reduction::Max : entry.signature.reduction;
  operation.count = is_barrier ? 1 : entry.signature.count;
  operation.ring = ring_;
  operation.urgency = entry.urgency;
  operation.memory = memory_;
  if (is_exchange(operation.collective)) return place_exchange(key, entry, std::move(operation));
  BRAID_RETURN_IF_ERROR(check_kept(key, entry));
  for (uint32_t i = 0; i < local_ranks_.size(); ++i)
    operation.inputs.push_back(is_barrier ? OperationInput(kBarrierInput) : input_of(entry, i));
  if (operation.collective == Collective::Broadcast) {
    const uint32_t root_block = ring_->block_of_rank[entry.signature.root];
    uint32_t first_block = 0;
    while (root_block >= first_block + ring_->ranks_of_node[operation.root_node]) {
      first_block += ring_->ranks_of_node[operation.root_node++];
    }
    operation.root_local_input = root_block - first_block;
  }

  entry.result_bytes =
      result_bytes(operation.collective, operation.dtype, operation.count, ring_->world_size);
  if (entry.shard != nullptr) prepare_update(entry, operation);
  operation.hop = hop_of(key, entry);
  choose_algorithm(operation, entry.settings.get(), hash_of(entry.signature, hash_));
  if (entry.gauge != nullptr) say_what_is_final(operation, *entry.gauge);
  entry.is_early = is_early(operation);
  entry.route = operation.route;
  if (!entry.is_early) {
    entry.awaited = entry.route == nullptr ? std::vector{(ring_->self + 1) % ring_->nodes}
                                           : entry.route->targets;
  }
  BRAID_RETURN_IF_ERROR(allocate(key, entry));
  operation.result = memory_->data() + entry.result_offset;
  return start_in_turn(entry, std::move(operation));
}

Status OperationTable::allocate(const OperationKey& key, Entry& entry) {
  auto placed = memory_->allocate(entry.result_bytes);
  if (!placed) {
    return placed.status().with_context(
        fmt::format("job '{}': no room for the result of {}", job_name_, describe(entry, key)));
  }
  entry.result_offset = *placed;
  return Status::ok();
}

Status OperationTable::start_in_turn(Entry& entry, Operation operation) {
  entry.state = State::Placed;
  if (placed_.empty() && can_start(operation, entry)) return start(entry, std::move(operation));
  placed_.push_back(std::move(operation));
  return Status::ok();
}

bool OperationTable::can_start(const Operation& operation, const Entry& entry) const {
  return (ring_->nodes > 1 || running_ < kLocalRunningMax) &&
         memory_->has_memory(entry.result_offset, entry.result_bytes) &&
         (entry.coded == nullptr || entry.coded->memory == nullptr ||
          entry.coded->memory->may_begin(operation.key.step)) &&
         (entry.shard == nullptr || entry.shard->may_begin(operation.key.step)) &&
         ((operation.exchange == nullptr &&
           (operation.hop == nullptr ||
            (operation.route != &ring_->routes->two_hops &&
             operation.route != &ring_->routes->two_hops_reduce_scatter))) ||
          ring_->nodes == 1 || services_.reach_all());
}

std::shared_ptr<Hop> OperationTable::hop_of(const OperationKey& key, const Entry& entry) const {
  if (!has_hop(entry)) return nullptr;
  CodedSum coded;
  if (entry.coded != nullptr) {
    const bool is_average = entry.signature.reduction == Reduction::Average;
    coded = (is_average ? entry.coded->average : entry.coded->sum).of_step(key.step);
  }
  auto memory = coded.memory_floats != 0 ? entry.coded->memory : nullptr;
  if (entry.shard != nullptr)
    coded = with_weights(entry.coded == nullptr ? nullptr : &coded, pulls_rounded(entry));
  // What an estimate loses is nobody's loss: its gradient comes again in the step that is kept.
  const bool is_estimate =
      entry.shard != nullptr && entry.signature.update.action == UpdateAction::Estimate;
  const auto use = is_estimate ? ErrorUse::Read : ErrorUse::Renew;
  auto elements = elements_of(entry, entry.first_element, &TensorGroup::Member::first_element);
  return std::make_shared<CodecHop>(std::move(coded), std::move(memory), std::move(elements),
                                    mix64(key.tensor) + ring_->self, key.step, entry.gauge, use);
}

ElementRanges OperationTable::elements_of(const Entry& entry, uint64_t first,
                                          uint64_t TensorGroup::Member::*first_of_member) {
  ElementRanges elements;
  if (entry.group == nullptr) {
    elements.append(first, entry.signature.count);
  } else {
    for (const TensorGroup::Member& member : entry.group->members)
      elements.append(member.*first_of_member, member.count);
  }
  return elements;
}

// Around the ring each node encodes a sum.
void OperationTable::say_what_is_final(const Operation& operation, CodecGauge& gauge) const {
  if (operation.is_direct) gauge.set_final(Encoding::Part);
  if (operation.route == &ring_->routes->two_hops) gauge.set_final(Encoding::Sum);
}

Status OperationTable::on_memory(const Status& growth) {
  while (!placed_.empty()) {
    Entry& entry = entries_.at(placed_.front().key);
    if (!growth) {
      return growth.with_context(fmt::format("job '{}': no room for the result of {}", job_name_,
                                             describe(entry, placed_.front().key)));
    }
    if (!can_start(placed_.front(), entry)) break;
    Operation operation = std::move(placed_.front());
    placed_.pop_front();
    BRAID_RETURN_IF_ERROR(start(entry, std::move(operation)));
  }
  return Status::ok();
}

Status OperationTable::start(Entry& entry, Operation operation) {
  const OperationKey key = operation.key;
  entry.state = State::Running;
  ++running_;
  if (entry.coded != nullptr && entry.coded->memory != nullptr)
    entry.coded->memory->begin(key.step);
  if (entry.shard != nullptr) entry.shard->begin(key.step);
  // The engine must know the operation before others may send for it.
  // What halves take says nothing of all-reduces.
  if (operation.halves == Halves::Both) services_.observer.on_start(key, entry.result_bytes);
  // With one node there is nobody to wait for, and a direct one begins at once.
  if (ring_->nodes == 1 || entry.is_early) note_go(key, entry);
  BRAID_RETURN_IF_ERROR(check_taken(services_.engines.start(std::move(operation))));
  if (ring_->nodes == 1) return Status::ok();
  if (!entry.is_early) BRAID_RETURN_IF_ERROR(tell_sources(entry, key));
  if (!entry.is_early && entry.awaited.empty())
    BRAID_RETURN_IF_ERROR(go(key, entry));  // it sends nothing
  if (const auto early = early_ready_.extract(key); !early.empty()) {
    BRAID_RETURN_IF_ERROR(count_early_ready(early_ready_count_ - early.mapped().size()));
    for (const NodeReady& ready : early.mapped())
      BRAID_RETURN_IF_ERROR(take_readiness(entry, key, ready));
  }
  return Status::ok();
}

Status OperationTable::tell_sources(Entry& entry, const OperationKey& key) {
  entry.is_ready_told = true;
  if (entry.exchange != nullptr) return tell_exchange_sources(entry, key);
  if (entry.route == nullptr) {
    const uint32_t predecessor = (ring_->self + ring_->nodes - 1) % ring_->nodes;
    return services_.send_ready(predecessor, key, entry.signature);
  }
  for (const uint32_t source : entry.route->sources)
    BRAID_RETURN_IF_ERROR(services_.send_ready(source, key, entry.signature));
  return Status::ok();
}

// Of an operation that runs.
Status OperationTable::take_readiness(Entry& entry, const OperationKey& key,
                                      const NodeReady& ready) {
  BRAID_RETURN_IF_ERROR(check_agrees(entry, key, ready));
  if (std::erase(entry.awaited, ready.place) == 0 || !entry.awaited.empty()) return Status::ok();
  return go(key, entry);
}

void OperationTable::note_go(const OperationKey& key, Entry& entry) {
  services_.observer.on_go(key);
  entry.is_going = true;
  entry.went_ns = services_.now_ns();
  if (entry.signature.collective != Collective::AllReduce || entry.is_timed) return;
  entry.is_timed = true;
  if (all_reduces_going_++ == 0) going_since_ns_ = entry.went_ns;
}

Status OperationTable::go(const OperationKey& key, Entry& entry) {
  note_go(key, entry);
  return check_taken(services_.engines.go(key));
}

Status OperationTable::check_taken(bool is_taken) const {
  if (is_taken) return Status::ok();
  return make_status(StatusCode::ResourceExhausted,
                     "job '{}': too many operations are in flight on this node", job_name_);
}

Status OperationTable::tell_readiness() {
  for (auto& [key, entry] : entries_) {
    if (entry.state != State::Running || entry.is_ready_told) continue;
    if (std::exchange(entry.is_seen_running, true)) BRAID_RETURN_IF_ERROR(tell_sources(entry, key));
  }
  return Status::ok();
}

Status OperationTable::on_node_ready(uint32_t place, const OperationKey& key,
                                     const Signature& signature) {
  const auto position = entries_.find(key);
  if (position != entries_.end() && position->second.state == State::Published)
    return Status::ok();  // said twice, or of an early one that is over here
  if (position != entries_.end() && position->second.state == State::Running)
    return take_readiness(position->second, key, {place, signature});
  if (position == entries_.end() && has_ended(key)) return Status::ok();
  for (uint32_t i = 0; i < has_left_.size(); ++i) {
    const bool is_submitted = position != entries_.end() && has_submitted(position->second, i);
    if (has_left_[i] && !is_submitted) {
      return make_status(StatusCode::JobFailed,
                         "job '{}': {}, but another node has submitted another operation: {}",
                         job_name_, describe_leaver(i), to_string(signature));
    }
  }
  if (position != entries_.end())
    BRAID_RETURN_IF_ERROR(check_agrees(position->second, key, {place, signature}));
  if (early_ready_.size() >= kEarlyReadyMax && !early_ready_.contains(key)) {
    return make_status(StatusCode::Protocol,
                       "job '{}': other nodes are ready for {} operations nobody here knows",
                       job_name_, kEarlyReadyMax);
  }
  auto& ready = early_ready_[key];
  const size_t again =
      std::erase_if(ready, [place](const NodeReady& other) { return other.place == place; });
  ready.push_back({place, signature});
  return count_early_ready(early_ready_count_ + 1 - again);
}

Status OperationTable::count_early_ready(uint64_t count) {
  early_ready_count_ = count;
  Status room = early_charge_.set_in_steps(count * kReadyCostBytes, kReadyStepBytes);
  if (room) return room;
  return room.with_context(fmt::format(
      "job '{}': other nodes are ready for {} operations that not all ranks here have submitted",
      job_name_, early_ready_.size()));
}

Status OperationTable::on_rank_left(uint32_t local_rank, const std::string& reason) {
  has_left_[local_rank] = true;
  leave_reasons_[local_rank] = reason;
  for (auto& [key, entry] : entries_) {
    if (has_submitted(entry, local_rank)) continue;
    return make_status(StatusCode::JobFailed, "job '{}': {} without submitting {}", job_name_,
                       describe_leaver(local_rank), describe(entry, key));
  }
  if (!early_ready_.empty()) {
    for (const auto& [key, ready] : early_ready_) {
      const auto position = entries_.find(key);
      if (position != entries_.end() && has_submitted(position->second, local_rank)) continue;
      return make_status(StatusCode::JobFailed,
                         "job '{}': {}, but another node has submitted another operation: {}",
                         job_name_, describe_leaver(local_rank),
                         to_string(ready.front().signature));
    }
  }
  // A rank that has left gives back all results.
  for (auto entry = entries_.begin(); entry != entries_.end();) {
    const auto current = entry++;
    if (current->second.state != State::Published) continue;
    for (uint32_t i = 0; i < members(current->second); ++i)
      release_part(current->second, local_rank, i);
    forget_if_over(current);
  }
  return Status::ok();
}

}  // namespace braid
