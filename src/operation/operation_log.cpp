// SPDX-License-Identifier: Apache-2.0
#include "operation/operation_log.h"

#include <algorithm>

namespace braid {

void OperationLog::on_go(const OperationEntry& entry) {
  if (entry.submitted.signature().collective != Collective::AllReduce) return;
  if (all_reduces_going_++ == 0) going_since_ns_ = entry.went_ns;
}

void OperationLog::on_end(const OperationEntry& entry, uint64_t end_ns) {
  const GatheredOperation& submitted = entry.submitted;
  const GatheredOperation::Times& times = submitted.times();
  const auto collective = static_cast<size_t>(submitted.signature().collective);
  if (timeline_ != nullptr) {
    TimelineEvent span = span_of(entry);
    span.end_ns = end_ns;
    timeline_->record(span);
  }
  remember(submitted, end_ns);
  set_pending(pending_ - 1);
  const OperationKey& key = submitted.key();
  steps_done_ = std::max(steps_done_, key.step + 1);
  uint64_t& last_ended = last_ended_[key.tensor];
  last_ended = std::max(last_ended, key.step);
  ++counters_.operations[collective];
  counters_.operation_bytes += entry.result_bytes;
  numbers_->operations.add(1);
  numbers_->operation_bytes.add(entry.result_bytes);
  numbers_->submit_ns.add(times.last_submitted_ns - times.first_submitted_ns);
  numbers_->ready_ns.add(entry.went_ns - times.last_submitted_ns);
  numbers_->run_ns.add(end_ns - entry.went_ns);
  numbers_->collectives[collective].add(1);
  if (!entry.is_going || submitted.signature().collective != Collective::AllReduce) return;
  numbers_->all_reduce_bytes.add(entry.result_bytes);
  if (--all_reduces_going_ == 0) numbers_->all_reduce_ns.add(end_ns - going_since_ns_);
}

void OperationLog::remember(const GatheredOperation& submitted, uint64_t end_ns) {
  if (ended_.empty()) ended_.resize(kEndedKept);
  Ended& one = ended_[ended_next_];
  ended_next_ = (ended_next_ + 1) % kEndedKept;
  one.tensor = submitted.shared_name();
  one.step = submitted.key().step;
  one.collective = submitted.signature().collective;
  one.end_ns = end_ns;
  one.wait_ns.clear();  // what was taken for it stays
  if (submitted.form().group != nullptr) return;
  for (const GatheredOperation::Part& part : submitted.parts())
    one.wait_ns.push_back(end_ns - std::min(end_ns, part.submitted_ns));
}

void OperationLog::end_tensor(uint64_t tensor) {
  last_ended_.erase(tensor);
  ended_tensors_.add(tensor);
}

bool OperationLog::has_ended(const OperationKey& key) const {
  if (ended_tensors_.contains(key.tensor)) return true;
  const auto ended = last_ended_.find(key.tensor);
  return ended != last_ended_.end() && key.step <= ended->second;
}

void OperationLog::set_pending(size_t pending) {
  pending_ = pending;
  numbers_->operations_pending.set(pending);
}

std::vector<OperationLog::Pending> OperationLog::oldest_pending(size_t most) const {
  std::vector<const OperationEntry*> oldest;
  for (const auto& [key, entry] : entries_) {
    if (entry.state != OperationState::Published) oldest.push_back(&entry);
  }
  const auto submitted_ns = [](const OperationEntry* entry) {
    const GatheredOperation::Times& times = entry->submitted.times();
    return times.deadline_ns - uint64_t{times.timeout_ms} * 1'000'000;
  };
  const size_t count = std::min(most, oldest.size());
  std::ranges::partial_sort(oldest, oldest.begin() + static_cast<ptrdiff_t>(count), {},
                            submitted_ns);
  oldest.resize(count);
  std::vector<Pending> pending;
  for (const OperationEntry* const entry : oldest) {
    const GatheredOperation& submitted = entry->submitted;
    const Signature& signature = submitted.signature();
    Pending one{submitted.name(),
                submitted.key().step,
                signature.collective,
                submitted.members(),
                signature.count * element_bytes(signature.dtype),
                submitted_ns(entry),
                entry->is_going,
                {}};
    for (uint32_t i = 0; i < job_.local_ranks.size(); ++i) {
      if (submitted.has(i)) one.ranks.push_back(job_.local_ranks[i]);
    }
    pending.push_back(std::move(one));
  }
  return pending;
}

std::vector<OperationLog::Ended> OperationLog::latest_ended(size_t most) const {
  std::vector<Ended> latest;
  for (size_t ago = 1; ago <= std::min(most, ended_.size()); ++ago) {
    const Ended& one = ended_[(ended_next_ + kEndedKept - ago) % kEndedKept];
    if (one.tensor == nullptr) break;
    latest.push_back(one);
  }
  return latest;
}

std::vector<uint32_t> OperationLog::missing_ranks(const OperationKey& key) const {
  const auto position = entries_.find(key);
  if (position == entries_.end() && has_ended(key)) return {};
  std::vector<uint32_t> missing;
  for (uint32_t i = 0; i < job_.local_ranks.size(); ++i) {
    if (position == entries_.end() || !position->second.submitted.has(i))
      missing.push_back(job_.local_ranks[i]);
  }
  return missing;
}

std::string OperationLog::first_missing(const OperationKey& key, uint32_t rank) const {
  const auto position = entries_.find(key);
  if (position == entries_.end()) return {};
  const GatheredOperation& submitted = position->second.submitted;
  if (!submitted.form().is_merged()) return {};
  const auto local_rank =
      static_cast<uint32_t>(std::ranges::find(job_.local_ranks, rank) - job_.local_ranks.begin());
  const auto parts = submitted.parts_of(local_rank);
  const auto missing = std::ranges::find(parts, false, &GatheredOperation::Part::is_submitted);
  if (missing == parts.end()) return {};
  return *submitted.form().group->members[static_cast<size_t>(missing - parts.begin())].name;
}

TimelineEvent OperationLog::span_of(const OperationEntry& entry) {
  const GatheredOperation& submitted = entry.submitted;
  TimelineEvent event;
  event.kind = SpanKind::Operation;
  event.job_key = submitted.key().job_key;
  event.tensor = submitted.key().tensor;
  event.step = submitted.key().step;
  event.number = static_cast<uint32_t>(submitted.members());
  if (const auto plan = submitted.form().plan)
    event.slot = static_cast<uint16_t>(std::min(*plan, TimelineEvent::kSlotMax));
  event.begin_ns = submitted.times().last_submitted_ns;
  event.go_or_peer = entry.went_ns;
  event.bytes = entry.result_bytes;
  return event;
}

std::vector<TimelineEvent> OperationLog::unfinished_spans() const {
  std::vector<TimelineEvent> spans;
  for (const auto& [key, entry] : entries_) {
    if (entry.state == OperationState::Published) continue;
    spans.push_back(span_of(entry));
    spans.back().bytes = entry.submitted.parts_missing();
  }
  return spans;
}

}  // namespace braid
