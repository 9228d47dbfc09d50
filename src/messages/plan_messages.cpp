// SPDX-License-Identifier: Apache-2.0
#include "messages/plan_messages.h"

#include <cmath>

#include "messages/control_buffer.h"
#include "messages/tensor_bytes.h"

namespace braid {
namespace {

Status check_lengths(const proto::PlanReport& message) {
  const size_t tensors = message.tensors()->size();
  const bool same = tensors != 0 && message.counts()->size() == tensors &&
                    message.dtypes()->size() == tensors && message.ready_ns()->size() == tensors;
  if (!same) return {StatusCode::Protocol, "a plan report's lists are of different lengths"};
  const auto length = [](const auto* list) { return list == nullptr ? 0 : list->size(); };
  const size_t operations = length(message.operation_bytes());
  if (length(message.operation_ns()) != operations || length(message.operation_id()) != operations)
    return {StatusCode::Protocol, "a plan report's measurements are of different lengths"};
  const size_t beside = length(message.beside_set());
  if (beside > PlanReport::kBesideMax || length(message.beside_before_ns()) != beside ||
      length(message.beside_share()) != beside)
    return {StatusCode::Protocol,
            "a plan report's sets beside are too many, or of different lengths"};
  return Status::ok();
}

Status check_step(uint64_t step) {
  if (step <= kStepNumberMax) return Status::ok();
  return make_status(StatusCode::Protocol, "step {} is reported; right are up to {}", step,
                     kStepNumberMax);
}

TransferSettings read_settings(const proto::TransferSettings& message) {
  TransferSettings settings;
  settings.unit_bytes = message.unit_bytes();
  settings.chunk_bytes = message.chunk_bytes();
  settings.direct_bytes = message.direct_bytes();
  settings.two_hops_bytes = message.two_hops_bytes();
  settings.halving_bytes = message.halving_bytes();
  settings.is_hierarchical = message.hierarchical();
  settings.streams = message.streams();
  settings.flows = message.flows();
  settings.window_bytes = message.window_bytes();
  return settings;
}

Result<std::vector<PlainGroup>> read_plain(const proto::PlanProposal& message) {
  std::vector<PlainGroup> groups;
  if (message.plain() == nullptr) return groups;
  for (const proto::PlainGroup* one : *message.plain()) {
    const auto limit = static_cast<GuardLimit>(one->limit());
    const bool is_known = limit >= GuardLimit::Residual && limit <= GuardLimit::Saturation;
    if (!is_known || one->tensors()->size() == 0 || !std::isfinite(one->measured()) ||
        !std::isfinite(one->allowed()))
      return Status(StatusCode::Protocol, "a proposed plan does not say which codecs end, or why");
    groups.push_back(
        {{one->tensors()->begin(), one->tensors()->end()}, limit, one->measured(), one->allowed()});
  }
  return groups;
}

Status read_beside(const proto::PlanReport& message, PlanReport& report) {
  const uint32_t sets = message.beside_set() == nullptr ? 0 : message.beside_set()->size();
  for (uint32_t i = 0; i < sets; ++i) {
    const double share = message.beside_share()->Get(i);
    if (!(share > 0 && share <= 1)) {
      return make_status(StatusCode::Protocol,
                         "a plan report has a set in a share of {} of its steps; right is more "
                         "than 0 and at most 1",
                         share);
    }
    report.beside.push_back(
        {message.beside_set()->Get(i), message.beside_before_ns()->Get(i), share});
  }
  return Status::ok();
}

}  // namespace

const char* to_string(GuardLimit limit) {
  switch (limit) {
    case GuardLimit::Residual:
      return "residual";
    case GuardLimit::Cosine:
      return "cosine";
    case GuardLimit::Saturation:
      return "saturation";
  }
  return "?";
}

ControlBuffer make_plan_report(const PlanReport& report) {
  ControlBuffer builder;
  std::vector<uint8_t> dtypes;
  for (const DataType dtype : report.dtypes) dtypes.push_back(static_cast<uint8_t>(dtype));
  std::vector<uint64_t> ids, bytes, nanoseconds;
  for (const PlanReport::MeasuredOperation& one : report.operations) {
    ids.push_back(one.id);
    bytes.push_back(one.bytes);
    nanoseconds.push_back(one.nanoseconds);
  }
  std::vector<uint64_t> sets, before_ns;
  std::vector<double> shares;
  for (const PlanReport::Beside& one : report.beside) {
    sets.push_back(one.set);
    before_ns.push_back(one.before_ns);
    shares.push_back(one.share);
  }
  const auto body = proto::CreatePlanReportDirect(
      builder, report.job_key, report.set, report.plan, report.step, &report.tensors,
      &report.counts, &dtypes, &report.ready_ns, report.forward_ns, report.iteration_ns, &ids,
      &bytes, &nanoseconds, &report.codecs, &sets, &before_ns, &shares);
  return finish_control_message(std::move(builder), body);
}

ControlBuffer make_plan_proposal(const PlanProposal& proposal) {
  ControlBuffer builder;
  std::vector<uint32_t> sizes;
  std::vector<uint64_t> tensors;
  for (const auto& group : proposal.groups) {
    sizes.push_back(static_cast<uint32_t>(group.size()));
    tensors.insert(tensors.end(), group.begin(), group.end());
  }
  flatbuffers::Offset<proto::TransferSettings> settings;
  if (const auto& own = proposal.settings) {
    settings = proto::CreateTransferSettings(
        builder, own->unit_bytes, own->chunk_bytes, own->direct_bytes, own->streams, own->flows,
        own->window_bytes, own->halving_bytes, own->is_hierarchical, own->two_hops_bytes);
  }
  std::vector<flatbuffers::Offset<proto::PlainGroup>> plain;
  for (const PlainGroup& group : proposal.plain) {
    plain.push_back(proto::CreatePlainGroupDirect(
        builder, &group.tensors, static_cast<uint8_t>(group.limit), group.measured, group.allowed));
  }
  const auto body = proto::CreatePlanProposalDirect(
      builder, proposal.job_key, proposal.set, proposal.number, proposal.from_step, &sizes,
      &tensors, proposal.planner.c_str(), proposal.predicted_ns, proposal.cost.c_str(), settings,
      proposal.flows_open, proposal.reports_steps, plain.empty() ? nullptr : &plain);
  return finish_control_message(std::move(builder), body);
}

ControlBuffer make_plan_answer(const PlanProposal& proposal, bool accepted, uint64_t step) {
  ControlBuffer builder;
  const auto body = proto::CreatePlanAnswer(builder, proposal.job_key, proposal.set,
                                            proposal.number, accepted, step);
  return finish_control_message(std::move(builder), body);
}

ControlBuffer make_plan_verdict(const PlanProposal& proposal, bool holds) {
  ControlBuffer builder;
  const auto body =
      proto::CreatePlanVerdict(builder, proposal.job_key, proposal.set, proposal.number, holds);
  return finish_control_message(std::move(builder), body);
}

ControlBuffer make_set_registered(const SetSummary& summary) {
  ControlBuffer builder;
  const auto body = proto::CreateSetRegistered(
      builder, summary.job_key, summary.set, summary.tensors_hash, summary.bytes, summary.tensors);
  return finish_control_message(std::move(builder), body);
}

ControlBuffer make_set_unregistered(uint64_t job_key, uint64_t set) {
  ControlBuffer builder;
  const auto body = proto::CreateSetUnregistered(builder, job_key, set);
  return finish_control_message(std::move(builder), body);
}

ControlBuffer make_step_report(const StepReport& report) {
  ControlBuffer builder;
  const auto body = proto::CreateStepReport(builder, report.job_key, report.set, report.plan,
                                            report.step, report.nanoseconds);
  return finish_control_message(std::move(builder), body);
}

Result<SetSummary> parse_set_registered(const proto::SetRegistered& message) {
  if (message.bytes() > kSetBytesMax) {
    return make_status(StatusCode::Protocol,
                       "a set was registered with {} bytes; right are up to {}", message.bytes(),
                       kSetBytesMax);
  }
  return SetSummary{message.job_key(), message.set(), message.tensors_hash(), message.bytes(),
                    message.tensors()};
}

Result<StepReport> parse_step_report(const proto::StepReport& message) {
  BRAID_RETURN_IF_ERROR(check_step(message.step()));
  return StepReport{message.job_key(), message.set(), message.plan(), message.step(),
                    message.nanoseconds()};
}

Result<PlanReport> parse_plan_report(const proto::PlanReport& message) {
  if (Status checked = check_lengths(message); !checked) return checked;
  BRAID_RETURN_IF_ERROR(check_step(message.step()));
  PlanReport report;
  report.job_key = message.job_key();
  report.set = message.set();
  report.plan = message.plan();
  report.step = message.step();
  report.tensors.assign(message.tensors()->begin(), message.tensors()->end());
  report.counts.assign(message.counts()->begin(), message.counts()->end());
  report.ready_ns.assign(message.ready_ns()->begin(), message.ready_ns()->end());
  for (const uint8_t dtype : *message.dtypes()) {
    if (dtype >= kDataTypeCount)
      return make_status(StatusCode::Protocol, "a plan report has dtype {}", dtype);
    report.dtypes.push_back(static_cast<DataType>(dtype));
  }
  TensorBytes set;
  for (size_t i = 0; i < report.tensors.size(); ++i) {
    if (!set.add({}, report.dtypes[i], report.counts[i])) {
      return make_status(StatusCode::Protocol, "a plan report has {} elements of {}: too many",
                         report.counts[i], to_string(report.dtypes[i]));
    }
  }
  report.codecs.resize(report.tensors.size());
  if (message.codecs() != nullptr && message.codecs()->size() != 0) {
    if (message.codecs()->size() != report.codecs.size())
      return Status(StatusCode::Protocol, "a plan report's tensors and codecs are not as many");
    std::copy(message.codecs()->begin(), message.codecs()->end(), report.codecs.begin());
  }
  report.forward_ns = message.forward_ns();
  report.iteration_ns = message.iteration_ns();
  const uint32_t operations =
      message.operation_bytes() == nullptr ? 0 : message.operation_bytes()->size();
  for (uint32_t i = 0; i < operations; ++i) {
    report.operations.push_back({message.operation_id()->Get(i), message.operation_bytes()->Get(i),
                                 message.operation_ns()->Get(i)});
  }
  BRAID_RETURN_IF_ERROR(read_beside(message, report));
  return report;
}

Result<PlanProposal> parse_plan_proposal(const proto::PlanProposal& message,
                                         uint32_t chunk_bytes_max) {
  PlanProposal proposal;
  proposal.job_key = message.job_key();
  proposal.set = message.set();
  proposal.number = message.number();
  proposal.from_step = message.from_step();
  proposal.planner = message.planner()->str();
  proposal.predicted_ns = message.predicted_ns();
  proposal.cost = message.cost()->str();
  uint64_t next = 0;
  for (const uint32_t size : *message.group_sizes()) {
    if (next + size > message.tensors()->size())
      return Status(StatusCode::Protocol, "a proposed plan's groups are longer than its tensors");
    auto& group = proposal.groups.emplace_back();
    for (uint32_t i = 0; i < size; ++i) group.push_back(message.tensors()->Get(next++));
  }
  if (next != message.tensors()->size())
    return Status(StatusCode::Protocol, "a proposed plan has tensors without a group");
  auto plain = read_plain(message);
  if (!plain) return plain.status();
  proposal.plain = std::move(*plain);
  if (proposal.is_plain()) {
    if (message.settings() != nullptr || !proposal.groups.empty())
      return Status(StatusCode::Protocol, "a proposed plan ends codecs and changes more than that");
  } else if (message.settings() != nullptr) {
    proposal.settings = read_settings(*message.settings());
    if (const Status checked = check(*proposal.settings, chunk_bytes_max); !checked) {
      return make_status(StatusCode::Protocol, "plan {} was proposed with {}", proposal.number,
                         checked.message());
    }
  } else if (proposal.groups.empty()) {
    return Status(StatusCode::Protocol, "a proposed plan has neither groups nor settings");
  }
  constexpr uint32_t kFlowsMax = 256;
  if (message.flows_open() > kFlowsMax) {
    return make_status(StatusCode::Protocol,
                       "plan {} was proposed with {} flows; right are up to {}", proposal.number,
                       message.flows_open(), kFlowsMax);
  }
  proposal.flows_open = message.flows_open();
  proposal.reports_steps = message.reports_steps();
  return proposal;
}

}  // namespace braid
