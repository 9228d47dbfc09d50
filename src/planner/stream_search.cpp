// SPDX-License-Identifier: Apache-2.0
#include "planner/stream_search.h"

#include <algorithm>

#include "planner/pieces.h"

namespace braid {
namespace {

constexpr uint32_t kShifts[] = {1, 2, 4, 8, 16};  // by how many tensors a boundary is moved

uint64_t units_most(const Workload& workload, uint64_t piece_bytes_min) {
  return workload.tensors.size() + workload.bytes() / piece_bytes_min + workload.beside.size();
}

}  // namespace

StreamSearch::StreamSearch(const Workload& workload, const CostModel& cost, const Options& options)
    : workload_(workload),
      cost_(cost),
      options_{options.streams, std::max<uint64_t>(options.piece_bytes_min, 1),
               options.fewest_units},
      slowdown_(slowdowns(cost, options.streams, units_most(workload, options_.piece_bytes_min))),
      trial_(beginning()) {
  bytes_.reserve(workload.tensors.size() + 1);
  bytes_.push_back(0);
  for (const Workload::Tensor& tensor : workload.tensors) {
    bytes_.push_back(bytes_.back() + tensor.bytes);
  }
}

bool StreamSearch::better(const Score& a, const Score& b) const {
  if (a.end_seconds != b.end_seconds) return a.end_seconds < b.end_seconds;
  return options_.fewest_units && a.units < b.units;
}

StreamSearch::Score StreamSearch::score(const Plan& plan) {
  Checkpoint state = beginning();
  for (const Plan::Group& group : plan.groups) play(state, group);
  return {finish(state), state.units};
}

double StreamSearch::finish(Checkpoint& state) {
  state.beside.start_all(state.channels, ends_);
  const double end = state.channels.finish(ends_);
  ends_.clear();
  return end;
}

Plan::Group StreamSearch::cut(Plan::Group group, uint64_t pieces) const {
  const uint64_t bytes = bytes_[group.end] - bytes_[group.begin];
  const uint64_t most = std::max<uint64_t>(bytes / options_.piece_bytes_min, 1);
  group.pieces = static_cast<uint32_t>(std::clamp<uint64_t>(pieces, 1, std::min(most, 1ul << 20)));
  return group;
}

void StreamSearch::play(Checkpoint& state, const Plan::Group& group) {
  const uint64_t bytes = bytes_[group.end] - bytes_[group.begin];
  const double ready = workload_.tensors[group.end - 1].ready_seconds;
  state.beside.start_until(ready, state.channels, ends_);
  for (uint32_t piece = 0; piece < group.pieces; ++piece) {
    const CostModel::Phases phases = cost_.phases(piece_bytes(bytes, group.pieces, piece));
    const double start =
        state.channels.start(static_cast<uint32_t>(state.units++), ready, phases, ends_);
    if (piece == 0) state.was_idle = start == ready && state.channels.busy() == 1;
  }
  ends_.clear();
  units_played_ += group.pieces;
}

// Plays the plan from its group `first` on and remembers the states on the way.
void StreamSearch::play_from(size_t first) {
  checkpoints_.resize(groups_.size() + 1, beginning());
  trial_ = checkpoints_[first];
  for (size_t i = first; i < groups_.size(); ++i) {
    play(trial_, groups_[i]);
    checkpoints_[i + 1] = trial_;
  }
  score_.units = trial_.units;
  score_.end_seconds = finish(trial_);
}

// The score of the plan with the groups `instead` in the place of some.
StreamSearch::Score StreamSearch::score_of_change(size_t first, size_t removed,
                                                  const Groups& instead) {
  trial_ = checkpoints_[first];
  for (const Plan::Group& group : instead) play(trial_, group);
  for (size_t i = first + removed; i < groups_.size(); ++i) {
    play(trial_, groups_[i]);
    const Checkpoint& unchanged = checkpoints_[i + 1];
    // What follows a group that found the network idle does not depend on what was before.
    if (trial_.was_idle && unchanged.was_idle) {
      return {score_.end_seconds, score_.units - unchanged.units + trial_.units};
    }
  }
  return {finish(trial_), trial_.units};
}

// Puts the groups `instead` into the place of some, if that is better.
bool StreamSearch::try_change(size_t first, size_t removed, const Groups& instead) {
  if (!better(score_of_change(first, removed, instead), score_)) return false;
  const auto at = groups_.begin() + static_cast<ptrdiff_t>(first);
  groups_.insert(groups_.erase(at, at + static_cast<ptrdiff_t>(removed)), instead.begin(),
                 instead.end());
  play_from(first);
  return true;
}

bool StreamSearch::try_merge(size_t first) {
  if (first + 1 >= groups_.size()) return false;
  const Plan::Group& next = groups_[first + 1];
  const uint64_t pieces = std::max(groups_[first].pieces, next.pieces);
  const Plan::Group merged{groups_[first].begin, next.end};
  return try_change(first, 2, {cut(merged, pieces)}) ||
         (pieces > 1 && try_change(first, 2, {merged}));
}

bool StreamSearch::try_boundaries(size_t first) {
  if (first + 1 >= groups_.size()) return false;
  const Plan::Group left = groups_[first];
  const Plan::Group right = groups_[first + 1];
  const auto move_to = [&](uint32_t boundary) {
    return try_change(
        first, 2,
        {cut({left.begin, boundary}, left.pieces), cut({boundary, right.end}, right.pieces)});
  };
  for (const uint32_t shift : kShifts) {
    if (left.end + shift < right.end && move_to(left.end + shift)) return true;
    if (left.begin + shift < left.end && move_to(left.end - shift)) return true;
  }
  return false;
}

// The boundary that halves the group's bytes; the group has at least two tensors.
uint32_t StreamSearch::middle(const Plan::Group& group) const {
  const uint64_t half = bytes_[group.begin] + (bytes_[group.end] - bytes_[group.begin]) / 2;
  const auto at = std::lower_bound(bytes_.begin() + group.begin, bytes_.begin() + group.end, half);
  return std::clamp(static_cast<uint32_t>(at - bytes_.begin()), group.begin + 1, group.end - 1);
}

bool StreamSearch::try_splits(size_t first) {
  const Plan::Group group = groups_[first];
  if (group.end - group.begin < 2) return false;
  for (const uint32_t boundary : {middle(group), group.end - 1, group.begin + 1}) {
    for (const uint32_t pieces : {group.pieces, (group.pieces + 1) / 2}) {
      if (try_change(first, 1,
                     {cut({group.begin, boundary}, pieces), cut({boundary, group.end}, pieces)})) {
        return true;
      }
      if (pieces == 1) break;
    }
  }
  return false;
}

bool StreamSearch::try_pieces(size_t first) {
  const Plan::Group group = groups_[first];
  const uint64_t now = group.pieces;
  for (const uint64_t pieces : {now + 1, now - 1, now * 2, uint64_t{options_.streams}}) {
    const Plan::Group other = cut(group, pieces);
    if (other.pieces != group.pieces && try_change(first, 1, {other})) return true;
  }
  return false;
}

bool StreamSearch::improve_group(size_t first) {
  return try_pieces(first) || try_boundaries(first) || try_merge(first) || try_splits(first);
}

Plan StreamSearch::improve(const Plan& plan, uint64_t units_max) {
  if (plan.groups.empty()) return plan;
  const auto first_changed =
      plan.groups.end() - static_cast<ptrdiff_t>(std::min(plan.groups.size(), kGroupsMax));
  groups_.assign(first_changed, plan.groups.end());
  checkpoints_.assign(1, beginning());
  for (auto group = plan.groups.begin(); group != first_changed; ++group) {
    play(checkpoints_.front(), *group);
  }
  play_from(0);
  units_played_ = 0;
  // The last groups first: they decide when all is through, and are cheap to play again.
  bool improved = true;
  while (improved) {
    improved = false;
    for (size_t first = groups_.size(); first-- > 0 && units_played_ < units_max;) {
      while (units_played_ < units_max && first < groups_.size() && improve_group(first)) {
        improved = true;
      }
    }
    if (units_played_ >= units_max) break;
  }
  Plan better_plan{{plan.groups.begin(), first_changed}};
  better_plan.groups.insert(better_plan.groups.end(), groups_.begin(), groups_.end());
  return better_plan;
}

}  // namespace braid
