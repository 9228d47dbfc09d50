// SPDX-License-Identifier: Apache-2.0
#include "planner/update_rounds.h"

#include <algorithm>

#include "base/assert.h"
#include "planner/pieces.h"

namespace braid {
namespace {

enum class Traffic : uint8_t { PushAndPull, PushAlone, EncodedPushAndPull };

// What the units of one kind of round cost.
class RoundMaker {
 public:
  RoundMaker(const CostModel& cost, const UpdateOptions& options)
      : cost_(cost), options_(options) {}

  UpdateRound make(const Workload& workload, const Plan& plan, Traffic traffic) const {
    UpdateRound round;
    for (const Plan::Group& group : plan.groups) {
      uint64_t bytes = 0;
      for (uint32_t i = group.begin; i < group.end; ++i) bytes += workload.tensors[i].bytes;
      for (uint32_t piece = 0; piece < group.pieces; ++piece) {
        add_unit(piece_bytes(bytes, group.pieces, piece), traffic, round);
      }
    }
    return round;
  }

 private:
  void add_unit(uint64_t bytes, Traffic traffic, UpdateRound& round) const {
    const CostModel::Phases plain = cost_.phases(bytes);
    const auto plain_bytes = static_cast<double>(bytes);
    const double adding = options_.adding_share;
    const double half = (1 - adding) / 2;  // of what is sent
    switch (traffic) {
      case Traffic::PushAndPull:
        round.units.push_back(plain);
        round.wire_bytes += plain_bytes;
        return;
      case Traffic::PushAlone:
        round.units.push_back(
            {plain.startup_seconds / 2, plain.transfer_seconds * (half + adding)});
        round.wire_bytes += plain_bytes / 2;
        return;
      case Traffic::EncodedPushAndPull: {
        const uint64_t encoded_bytes = options_.encoded_bytes(bytes);
        const CostModel::Phases encoded = cost_.phases(encoded_bytes);
        round.units.push_back(
            {(encoded.startup_seconds + plain.startup_seconds) / 2,
             encoded.transfer_seconds * half + plain.transfer_seconds * (half + adding)});
        round.wire_bytes += (static_cast<double>(encoded_bytes) + plain_bytes) / 2;
        return;
      }
    }
  }

  const CostModel& cost_;
  const UpdateOptions& options_;
};

Workload ready_together(Workload workload) {
  const double end = workload.backward_seconds();
  for (Workload::Tensor& tensor : workload.tensors) tensor.ready_seconds = end;
  return workload;
}

// Neighbours together, of about as many bytes each; none is empty.
std::vector<Workload> cut_into_fragments(const Workload& workload, uint32_t fragments) {
  const size_t tensors = workload.tensors.size();
  const auto bytes = static_cast<double>(workload.bytes());
  std::vector<Workload> cut;
  double bytes_before = 0;
  size_t begin = 0;
  for (uint32_t i = 0; i < fragments; ++i) {
    const double bytes_until = bytes * (i + 1) / fragments;
    const size_t end_max = tensors - (fragments - 1 - i);
    Workload& fragment = cut.emplace_back();
    fragment.forward_seconds = workload.forward_seconds;
    size_t end = begin;
    while (end < end_max && (end == begin || bytes_before < bytes_until || i + 1 == fragments)) {
      bytes_before += static_cast<double>(workload.tensors[end].bytes);
      fragment.tensors.push_back(workload.tensors[end++]);
    }
    begin = end;
  }
  return cut;
}

UpdateRounds diloco_rounds(const Workload& together, const CostModel& cost, const Planner& planner,
                           const UpdateMethod& method, const UpdateOptions& options) {
  UpdateRounds rounds;
  rounds.delay = method.overlap;
  // What is sent of a fragment is known when its exchange before that has been merged.
  rounds.waits_first = method.overlap > 0;
  rounds.kind_of_step.resize(method.period);
  for (const Workload& fragment : cut_into_fragments(together, method.fragments)) {
    const Plan plan = planner.plan(fragment, cost, options.planning);
    rounds.groups += plan.groups.size();
    const auto kind = static_cast<uint32_t>(rounds.kinds.size());
    const uint64_t step = (kind + 1) * uint64_t{method.period} / method.fragments;
    rounds.kind_of_step[step - 1] = kind;
    rounds.kinds.push_back(RoundMaker(cost, options).make(fragment, plan, Traffic::PushAndPull));
  }
  return rounds;
}

// The traffic of steps that are not K-th ones.
Traffic usual_traffic(UpdateKind kind) {
  switch (kind) {
    case UpdateKind::SsdSgd:
      return Traffic::PushAlone;
    case UpdateKind::CdSgd:
      return Traffic::EncodedPushAndPull;
    case UpdateKind::Sync:
    case UpdateKind::Sharded:
    case UpdateKind::OdSgd:
    case UpdateKind::Acco:
    case UpdateKind::DiLoCo:
      return Traffic::PushAndPull;
  }
  return Traffic::PushAndPull;
}

}  // namespace

Result<UpdateRounds> make_update_rounds(const Workload& workload, const CostModel& cost,
                                        const Planner& planner, const UpdateMethod& method,
                                        const UpdateOptions& options) {
  BRAID_ASSERT(method.kind != UpdateKind::Sync && method.kind != UpdateKind::Sharded,
               "rounds are of methods whose communication begins after backward");
  BRAID_ASSERT(method.kind != UpdateKind::CdSgd || options.encoded_bytes,
               "the rounds of cd-sgd need the size of what is encoded");
  if (method.fragments > std::max<size_t>(workload.tensors.size(), 1)) {
    return make_status(StatusCode::InvalidArgument,
                       "update method '{}': {} tensors do not make {} fragments; right are as many "
                       "as there are tensors, or fewer",
                       to_string(method), workload.tensors.size(), method.fragments);
  }
  const Workload together = ready_together(workload);
  if (method.kind == UpdateKind::DiLoCo) {
    return diloco_rounds(together, cost, planner, method, options);
  }
  const Plan plan = planner.plan(together, cost, options.planning);
  const RoundMaker maker(cost, options);
  UpdateRounds rounds;
  rounds.groups = plan.groups.size();
  rounds.delay = 1;
  // An estimate is made of the weights of the update before it, and an update follows its estimate.
  rounds.waits_first = method.kind == UpdateKind::Acco;
  rounds.kinds = {maker.make(together, plan, usual_traffic(method.kind)),
                  maker.make(together, plan, Traffic::PushAndPull)};
  rounds.kind_of_step.assign(method.period, 0);
  rounds.kind_of_step.back() = 1;
  return rounds;
}

}  // namespace braid
