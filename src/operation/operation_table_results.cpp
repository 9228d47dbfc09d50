// SPDX-License-Identifier: Apache-2.0
// What a table does with results: published, given back by every local rank, forgotten.
#include <algorithm>

#include "base/clock.h"
#include "operation/operation_table.h"

namespace braid {
namespace {

bool is_per_rank(Collective collective) { return collective == Collective::ReduceScatter; }

}  // namespace

void OperationTable::on_done(const OperationKey& key) {
  const auto position = entries_.find(key);
  if (position == entries_.end() || position->second.state != State::Running) return;
  services_.observer.on_done(key);
  Entry& entry = position->second;
  note_end(key, entry);
  entry.state = State::Published;
  --running_;
  if (entry.coded != nullptr) finish_coded(key, entry);
  if (entry.shard != nullptr) entry.shard->end();
  set_unfinished(unfinished_ - 1);
  steps_done_ = std::max(steps_done_, key.step + 1);
  uint64_t& last_published = last_published_[key.tensor];
  last_published = std::max(last_published, key.step);
  ++services_.counters.operations[static_cast<size_t>(entry.signature.collective)];
  services_.counters.operation_bytes += entry.result_bytes;
  for (uint32_t i = 0; i < local_ranks_.size(); ++i) {
    if (has_left_[i]) {
      for (uint32_t member = 0; member < members(entry); ++member) release_part(entry, i, member);
    } else {
      publish(entry, i);
    }
  }
  forget_if_over(position);
  if (placed_.empty()) return;
  if (const Status started = on_memory(Status::ok()); !started) services_.fail(started);
}

void OperationTable::note_end(const OperationKey& key, const Entry& entry) {
  const uint64_t end_ns = services_.now_ns();
  if (services_.timeline != nullptr) {
    TimelineEvent span = span_of(key, entry);
    span.end_ns = end_ns;
    services_.timeline->record(span);
  }
  remember(key, entry, end_ns);
  JobNumbers& numbers = *services_.numbers;
  numbers.operations.add(1);
  numbers.operation_bytes.add(entry.result_bytes);
  numbers.submit_ns.add(entry.submitted_ns - entry.first_submitted_ns);
  numbers.ready_ns.add(entry.went_ns - entry.submitted_ns);
  numbers.run_ns.add(end_ns - entry.went_ns);
  numbers.collectives[static_cast<size_t>(entry.signature.collective)].add(1);
  if (!entry.is_timed) return;
  numbers.all_reduce_bytes.add(entry.result_bytes);
  if (--all_reduces_going_ == 0) numbers.all_reduce_ns.add(end_ns - going_since_ns_);
}

void OperationTable::remember(const OperationKey& key, const Entry& entry, uint64_t end_ns) {
  if (ended_.empty()) ended_.resize(kEndedKept);
  Ended& one = ended_[ended_next_];
  ended_next_ = (ended_next_ + 1) % kEndedKept;
  one.tensor = first_name(entry);
  one.step = key.step;
  one.collective = entry.signature.collective;
  one.end_ns = end_ns;
  one.wait_ns.clear();  // what was taken for it stays
  if (entry.group != nullptr || entry.plan) return;
  for (const LocalPart& part : entry.parts)
    one.wait_ns.push_back(end_ns - std::min(end_ns, part.submitted_ns));
}

TimelineEvent OperationTable::span_of(const OperationKey& key, const Entry& entry) const {
  TimelineEvent event;
  event.kind = SpanKind::Operation;
  event.job_key = job_key_;
  event.tensor = key.tensor;
  event.step = key.step;
  event.number = static_cast<uint32_t>(members(entry));
  if (entry.plan)
    event.slot = static_cast<uint16_t>(std::min(*entry.plan, TimelineEvent::kSlotMax));
  event.begin_ns = entry.submitted_ns;
  event.go_or_peer = entry.went_ns;
  event.bytes = entry.result_bytes;
  return event;
}

std::vector<TimelineEvent> OperationTable::unfinished_spans() const {
  std::vector<TimelineEvent> spans;
  for (const auto& [key, entry] : entries_) {
    if (entry.state == State::Published) continue;
    spans.push_back(span_of(key, entry));
    spans.back().bytes = entry.parts.size() - entry.submitted;
  }
  return spans;
}

void OperationTable::set_unfinished(size_t unfinished) {
  unfinished_ = unfinished;
  services_.numbers->operations_pending.set(unfinished);
}

void OperationTable::finish_coded(const OperationKey& key, const Entry& entry) {
  if (entry.coded->memory != nullptr) entry.coded->memory->end();
  if (entry.gauge != nullptr) services_.observer.on_loss(key, entry.gauge->loss());
}

void OperationTable::publish(const Entry& entry, uint32_t local_rank) {
  ResultSink* sink = services_.sinks[local_rank];
  if (sink == nullptr) return;
  const LocalPart* parts = &entry.parts[local_rank * members(entry)];
  const bool is_pushed =
      entry.shard != nullptr && entry.signature.update.action == UpdateAction::Push;
  if (is_pushed) {
    for (size_t i = 0; i < members(entry); ++i)
      sink->publish(parts[i].ticket, entry.result_offset, 0);
  } else if (entry.group != nullptr) {
    for (size_t i = 0; i < entry.group->members.size(); ++i) {
      const TensorGroup::Member& member = entry.group->members[i];
      sink->publish(parts[i].ticket, entry.result_offset + member.offset,
                    member.count * element_bytes(entry.group->dtype));
    }
  } else if (is_exchange(entry.signature.collective)) {
    sink->publish(parts->ticket, entry.result_offset + parts->result_start,
                  entry.exchange->result_bytes(local_rank));
  } else if (is_per_rank(entry.signature.collective)) {
    const uint64_t block_bytes = entry.result_bytes / ring_->world_size;
    const uint64_t block = ring_->block_of_rank[local_ranks_[local_rank]];
    sink->publish(parts->ticket, entry.result_offset + block * block_bytes, block_bytes);
  } else {
    const bool has_data = entry.signature.collective != Collective::Barrier;
    sink->publish(parts->ticket, entry.result_offset, has_data ? entry.result_bytes : 0);
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
                       "job '{}': rank {} gave back the result of {} before it was done", job_name_,
                       local_ranks_[local_rank], describe(entry, key));
  }
  release_part(entry, local_rank, is_member ? member->second.member : 0);
  forget_if_over(position);
  return Status::ok();
}

void OperationTable::release_part(Entry& entry, uint32_t local_rank, uint32_t member) {
  LocalPart& part = entry.parts[local_rank * members(entry) + member];
  if (!part.is_released) ++entry.released;
  part.is_released = true;
}

void OperationTable::forget_if_over(Entries::iterator position) {
  const Entry& entry = position->second;
  if (entry.state != State::Published || !entry.is_retired || entry.released < entry.parts.size())
    return;
  memory_->free(entry.result_offset);
  if (entry.group != nullptr) {
    for (const TensorGroup::Member& member : entry.group->members)
      members_.erase({job_key_, member.tensor, position->first.step});
  }
  entries_.erase(position);
}

void OperationTable::end_tensor(uint64_t tensor) {
  last_published_.erase(tensor);
  ended_tensors_.add(tensor);
}

// Of an operation without an entry: a tensor's steps grow.
bool OperationTable::has_ended(const OperationKey& key) const {
  if (ended_tensors_.contains(key.tensor)) return true;
  const auto published = last_published_.find(key.tensor);
  return published != last_published_.end() && key.step <= published->second;
}

}  // namespace braid
