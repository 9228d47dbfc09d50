// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "engine/transfer_settings.h"
#include "messages/control_messages.h"
#include "proto/chunk.h"
#include "proto/control_generated.h"
#include "proto/types.h"

namespace braid {

// What a node has measured of one set: see PlanReport. Vectors by tensor, all of one length.
struct PlanReport {
  struct MeasuredOperation {
    uint64_t id = 0;  // the same on all nodes
    uint64_t bytes = 0;
    uint64_t nanoseconds = 0;
  };
  // Another set that began a step between two steps of this one.
  struct Beside {
    uint64_t set = 0;
    uint64_t before_ns = 0;  // the later of the two; the median
    double share = 0;        // of this set's steps: more than 0, at most 1
    bool operator==(const Beside&) const = default;
  };
  static constexpr size_t kBesideMax = 16;
  uint64_t job_key = 0;
  uint64_t set = 0;
  uint32_t plan = 0;
  uint64_t step = 0;
  std::vector<uint64_t> tensors;
  std::vector<uint64_t> counts;
  std::vector<DataType> dtypes;
  std::vector<uint64_t> codecs;  // hashes, 0: none; of a report that was read, one for each tensor
  std::vector<uint64_t> ready_ns;
  uint64_t forward_ns = 0;
  uint64_t iteration_ns = 0;
  std::vector<MeasuredOperation> operations;
  std::vector<Beside> beside;  // kBesideMax at most
};
// What a guard may watch. The numbers are those of PlainGroup.
enum class GuardLimit : uint8_t { Residual = 1, Cosine = 2, Saturation = 3 };
const char* to_string(GuardLimit limit);
// Tensors that are to travel without their codec, and why: see PlainGroup.
struct PlainGroup {
  std::vector<uint64_t> tensors;  // hashes
  GuardLimit limit = GuardLimit::Residual;
  double measured = 0;
  double allowed = 0;
};
struct PlanProposal {
  uint64_t job_key = 0;
  uint64_t set = 0;
  uint32_t number = 0;
  uint64_t from_step = 0;
  std::vector<std::vector<uint64_t>> groups;  // hashes
  std::string planner;
  uint64_t predicted_ns = 0;
  std::string cost;                          // JSON
  std::optional<TransferSettings> settings;  // nothing: they stay
  uint32_t flows_open = 0;
  bool reports_steps = false;
  std::vector<PlainGroup> plain;  // if any: neither groups nor settings

  // These tensors lose their codec, and nothing else changes.
  bool is_plain() const { return !plain.empty(); }
  // The settings alone change.
  bool keeps_groups() const { return settings.has_value() && groups.empty(); }
};
// What a node has registered: see SetRegistered.
struct SetSummary {
  uint64_t job_key = 0;
  uint64_t set = 0;
  uint64_t tensors_hash = 0;
  uint64_t bytes = 0;
  uint32_t tensors = 0;
  bool operator==(const SetSummary&) const = default;
};
struct StepReport {
  uint64_t job_key = 0;
  uint64_t set = 0;
  uint32_t plan = 0;
  uint64_t step = 0;
  uint64_t nanoseconds = 0;
};
ControlBuffer make_plan_report(const PlanReport& report);
ControlBuffer make_plan_proposal(const PlanProposal& proposal);
ControlBuffer make_plan_answer(const PlanProposal& proposal, bool accepted, uint64_t step);
ControlBuffer make_plan_verdict(const PlanProposal& proposal, bool holds);
ControlBuffer make_set_registered(const SetSummary& summary);
ControlBuffer make_set_unregistered(uint64_t job_key, uint64_t set);
ControlBuffer make_step_report(const StepReport& report);
// Lengths that contradict each other and numbers out of range are errors.
Result<PlanReport> parse_plan_report(const proto::PlanReport& message);
// `chunk_bytes_max`: what this node's transport is set up for.
Result<PlanProposal> parse_plan_proposal(const proto::PlanProposal& message,
                                         uint32_t chunk_bytes_max = proto::kChunkBytesMax);
Result<SetSummary> parse_set_registered(const proto::SetRegistered& message);
Result<StepReport> parse_step_report(const proto::StepReport& message);

}  // namespace braid
