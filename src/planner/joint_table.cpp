// SPDX-License-Identifier: Apache-2.0
#include "planner/joint_table.h"

#include <algorithm>
#include <limits>

namespace braid {
namespace {

size_t joint_states(std::span<const Workload> streams, size_t atoms_max) {
  size_t states = 1;
  for (const Workload& stream : streams) {
    states *= std::min(stream.tensors.size(), atoms_max) + 1;
    if (states > JointTable::kStatesMax) return states;
  }
  return states;
}

}  // namespace

JointTable::JointTable(std::span<const Workload> streams, const CostModel& cost) : cost_(cost) {
  const size_t atoms = atoms_max(streams);
  size_t stride = 1;
  for (const Workload& stream : streams) {
    if (stream.tensors.size() > atoms) is_exact_ = false;
    streams_.push_back(cut(stream, atoms));
    streams_.back().stride = stride;
    stride *= streams_.back().atoms() + 1;
  }
  states_.resize(stride);
}

// At least one, also of so many streams that the states are too many.
size_t JointTable::atoms_max(std::span<const Workload> streams) {
  size_t most = 1;
  for (const Workload& stream : streams) most = std::max(most, stream.tensors.size());
  most = std::min(most, kStatesMax);
  while (most > 1 && joint_states(streams, most) > kStatesMax) --most;
  return most;
}

JointTable::Stream JointTable::cut(const Workload& workload, size_t atoms) const {
  const auto& tensors = workload.tensors;
  std::vector<double> passed = {0};  // ready times and sending times up to each tensor
  uint64_t bytes = 0;
  double sending = 0;
  for (const Workload::Tensor& tensor : tensors) {
    sending += cost_.seconds(tensor.bytes);
    passed.push_back(tensor.ready_seconds + sending);
  }
  const double share = passed.back() / static_cast<double>(atoms);
  Stream stream{{0}, {0}, {0}};
  for (uint32_t i = 0; i < tensors.size(); ++i) {
    bytes += tensors[i].bytes;
    const double next = share * static_cast<double>(stream.atoms() + 1);
    const bool is_last = i + 1 == tensors.size();
    if (tensors.size() > atoms && !is_last && (stream.atoms() + 1 == atoms || passed[i + 1] < next))
      continue;
    stream.ends.push_back(i + 1);
    stream.bytes.push_back(bytes);
    stream.ready_seconds.push_back(tensors[i].ready_seconds);
  }
  return stream;
}

void JointTable::fill() {
  std::vector<uint32_t> sent(streams_.size());  // atoms of each stream: the digits of the index
  for (size_t index = 1; index < states_.size(); ++index) {
    for (size_t stream = 0; ++sent[stream] > streams_[stream].atoms(); ++stream) sent[stream] = 0;
    states_[index].end_seconds = std::numeric_limits<double>::infinity();
    for (uint32_t stream = 0; stream < sent.size(); ++stream) {
      if (sent[stream] > 0) continue_with(index, stream, sent[stream]);
    }
  }
}

// Tries all groups of `stream` that end with its first `atoms` atoms.
void JointTable::continue_with(size_t index, uint32_t stream, uint32_t atoms) {
  const Stream& sending = streams_[stream];
  const double ready = sending.ready_seconds[atoms];
  State& best = states_[index];
  size_t before = index;
  for (uint32_t begin = atoms; begin-- > 0;) {
    before -= sending.stride;
    const double transfer = cost_.seconds(sending.bytes[atoms] - sending.bytes[begin]);
    if (ready + transfer > best.end_seconds) return;  // a larger group neither
    const State& state = states_[before];
    const double end = std::max(state.end_seconds, ready) + transfer;
    if (end < best.end_seconds || (end == best.end_seconds && state.groups + 1 < best.groups)) {
      best = {end, state.groups + 1, stream, begin};
    }
    if (state.end_seconds <= ready) return;
  }
}

std::vector<Plan> JointTable::plans() {
  fill();
  std::vector<Plan> plans(streams_.size());
  std::vector<uint32_t> sent;
  for (const Stream& stream : streams_) sent.push_back(static_cast<uint32_t>(stream.atoms()));
  for (size_t index = states_.size() - 1; index > 0;) {
    const State& state = states_[index];
    const Stream& stream = streams_[state.stream];
    plans[state.stream].groups.push_back(
        {stream.ends[state.begin], stream.ends[sent[state.stream]]});
    index -= stream.stride * (sent[state.stream] - state.begin);
    sent[state.stream] = state.begin;
  }
  for (Plan& plan : plans) std::ranges::reverse(plan.groups);
  return plans;
}

}  // namespace braid
