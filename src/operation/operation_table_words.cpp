// SPDX-License-Identifier: Apache-2.0
// What a table says of operations that do not end, or that ranks disagree about.
#include <algorithm>

#include "operation/operation_table.h"

namespace braid {

std::optional<OperationTable::Overdue> OperationTable::take_overdue(uint64_t now_ns) {
  auto earliest = entries_.end();
  for (auto position = entries_.begin(); position != entries_.end(); ++position) {
    const Entry& entry = position->second;
    if (entry.state == State::Published || entry.is_reported_overdue || now_ns < entry.deadline_ns)
      continue;
    if (earliest == entries_.end() || entry.deadline_ns < earliest->second.deadline_ns)
      earliest = position;
  }
  if (earliest == entries_.end()) return std::nullopt;
  auto& [key, entry] = *earliest;
  entry.is_reported_overdue = true;
  return Overdue{key, entry.timeout_ms,
                 fmt::format("job '{}': {}", job_name_, describe(entry, key))};
}

std::vector<uint32_t> OperationTable::missing_ranks(const OperationKey& key) const {
  const auto position = entries_.find(key);
  if (position == entries_.end() && has_ended(key)) return {};
  std::vector<uint32_t> missing;
  for (uint32_t i = 0; i < local_ranks_.size(); ++i) {
    if (position == entries_.end() || !has_submitted(position->second, i))
      missing.push_back(local_ranks_[i]);
  }
  return missing;
}

std::string OperationTable::first_missing(const OperationKey& key, uint32_t rank) const {
  const auto position = entries_.find(key);
  if (position == entries_.end() || position->second.group == nullptr) return {};
  const Entry& entry = position->second;
  const auto local_rank = static_cast<size_t>(
      std::find(local_ranks_.begin(), local_ranks_.end(), rank) - local_ranks_.begin());
  for (size_t i = 0; i < members(entry); ++i) {
    if (!entry.parts[local_rank * members(entry) + i].is_submitted)
      return *entry.group->members[i].name;
  }
  return {};
}

const std::shared_ptr<const std::string>& OperationTable::first_name(const Entry& entry) {
  return entry.group == nullptr ? entry.name : entry.group->members.front().name;
}

std::vector<OperationTable::Pending> OperationTable::oldest_pending(size_t most) const {
  using Submitted = std::pair<uint64_t, Entries::const_iterator>;
  std::vector<Submitted> oldest;
  for (auto position = entries_.begin(); position != entries_.end(); ++position) {
    const Entry& entry = position->second;
    if (entry.state != State::Published)
      oldest.emplace_back(entry.deadline_ns - uint64_t{entry.timeout_ms} * 1'000'000, position);
  }
  const size_t count = std::min(most, oldest.size());
  std::ranges::partial_sort(oldest, oldest.begin() + static_cast<ptrdiff_t>(count), {},
                            &Submitted::first);
  oldest.resize(count);
  std::vector<Pending> pending;
  for (const auto& [submitted_ns, position] : oldest) {
    const auto& [key, entry] = *position;
    Pending one{*first_name(entry),
                key.step,
                entry.signature.collective,
                1,
                entry.signature.count * element_bytes(entry.signature.dtype),
                submitted_ns,
                entry.is_going,
                {}};
    if (entry.group != nullptr) one.tensors = entry.group->members.size();
    for (uint32_t i = 0; i < local_ranks_.size(); ++i) {
      if (has_submitted(entry, i)) one.ranks.push_back(local_ranks_[i]);
    }
    pending.push_back(std::move(one));
  }
  return pending;
}

std::vector<OperationTable::Ended> OperationTable::latest_ended(size_t most) const {
  std::vector<Ended> latest;
  for (size_t ago = 1; ago <= std::min(most, ended_.size()); ++ago) {
    const Ended& one = ended_[(ended_next_ + kEndedKept - ago) % kEndedKept];
    if (one.tensor == nullptr) break;
    latest.push_back(one);
  }
  return latest;
}

std::string OperationTable::describe(const Entry& entry, const OperationKey& key) const {
  const std::string others =
      entry.group == nullptr
          ? std::string()
          : fmt::format(" and {} more that are merged with it", entry.group->members.size() - 1);
  return fmt::format("'{}'{} step {}, {}", *entry.name, others, key.step,
                     to_string(entry.signature));
}

std::string OperationTable::describe_leaver(uint32_t local_rank) const {
  const std::string& reason = leave_reasons_[local_rank];
  return fmt::format("rank {} left the job{}", local_ranks_[local_rank],
                     reason.empty() ? std::string() : fmt::format(" ({})", reason));
}

Status OperationTable::check_agrees(const Entry& entry, const OperationKey& key,
                                    const NodeReady& ready) const {
  if (entry.signature.collective == Collective::AllToAll &&
      ready.signature.collective == Collective::AllToAll &&
      ready.signature.dtype == entry.signature.dtype &&
      ready.signature.codec == entry.signature.codec &&
      ready.signature.owner_step == entry.signature.owner_step)
    return entry.state == State::Gathering  // compared when it runs
               ? Status::ok()
               : check_splits(key, entry,
                              entry.exchange->disagreement_with(ready.place, ready.signature));
  Signature said = ready.signature;
  // What the node's own ranks ask for is known once all of them have.
  if (entry.signature.updates == 0) {
    said.update = entry.signature.update;
    said.updates = entry.signature.updates;
  }
  if (said == entry.signature) return Status::ok();
  // The first rank of the other node speaks for it: its own ranks agree, or it would not be ready.
  uint32_t block = 0;
  for (uint32_t node = 0; node < ready.place; ++node) block += ring_->ranks_of_node[node];
  const auto rank = std::find(ring_->block_of_rank.begin(), ring_->block_of_rank.end(), block) -
                    ring_->block_of_rank.begin();
  return make_status(
      StatusCode::Mismatch,
      "job '{}': ranks disagree about '{}' step {}: rank {} says {}, rank {} says {}", job_name_,
      *entry.name, key.step, entry.first_rank, to_string(entry.signature), rank,
      to_string(ready.signature));
}

}  // namespace braid
