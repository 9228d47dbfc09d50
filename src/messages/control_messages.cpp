// SPDX-License-Identifier: Apache-2.0
#include "messages/control_messages.h"

#include "messages/control_buffer.h"

namespace braid {

ControlBuffer make_join_job(const std::string& name, uint32_t world_size, uint32_t rank,
                            int64_t process_id, uint32_t timeout_ms, const CutSettings& cut,
                            uint32_t weight, const std::string& rack, const JobOwner& owner,
                            uint32_t user) {
  ControlBuffer builder;
  const auto text = builder.CreateString(name);
  const auto rack_text = builder.CreateString(rack);
  const auto owner_bytes = builder.CreateVector(owner.data(), owner.size());
  const auto body =
      proto::CreateJoinJob(builder, text, world_size, rank, process_id, timeout_ms, cut.unit_bytes,
                           cut.chunk_bytes, cut.io_loops, weight, rack_text, owner_bytes, user);
  return finish_control_message(std::move(builder), body);
}

ControlBuffer make_job_start(const std::string& name, uint32_t world_size, uint32_t epoch,
                             uint64_t job_key, std::span<const MemberNode> nodes,
                             const Algorithms& algorithms, uint32_t weight, const JobOwner& owner,
                             uint32_t sample_every_steps) {
  ControlBuffer builder;
  std::vector<flatbuffers::Offset<proto::MemberNode>> members;
  members.reserve(nodes.size());
  for (const MemberNode& node : nodes) {
    const auto node_name = builder.CreateString(node.peer.name);
    const auto address = builder.CreateString(node.peer.address);
    const auto ranks = builder.CreateVector(node.ranks);
    const auto rack = builder.CreateString(node.rack);
    members.push_back(proto::CreateMemberNode(builder, node.peer.id, node_name, address,
                                              node.peer.port, ranks, rack));
  }
  const auto text = builder.CreateString(name);
  const auto vector = builder.CreateVector(members);
  const auto owner_bytes = builder.CreateVector(owner.data(), owner.size());
  const auto body = proto::CreateJobStart(builder, text, world_size, epoch, job_key, vector,
                                          algorithms.direct_bytes, weight, algorithms.halving_bytes,
                                          algorithms.is_hierarchical, owner_bytes,
                                          algorithms.two_hops_bytes, sample_every_steps);
  return finish_control_message(std::move(builder), body);
}

ControlBuffer make_job_ready(uint64_t job_key) {
  ControlBuffer builder;
  const auto body = proto::CreateJobReady(builder, job_key);
  return finish_control_message(std::move(builder), body);
}

ControlBuffer make_job_go(uint64_t job_key) {
  ControlBuffer builder;
  const auto body = proto::CreateJobGo(builder, job_key);
  return finish_control_message(std::move(builder), body);
}

ControlBuffer make_fail_job(uint64_t job_key, const std::string& name, const Status& reason,
                            const JobOwner& owner) {
  ControlBuffer builder;
  const auto text = builder.CreateString(name);
  const auto message = builder.CreateString(reason.message());
  const auto owner_bytes = builder.CreateVector(owner.data(), owner.size());
  const auto body = proto::CreateFailJob(builder, job_key, text,
                                         static_cast<uint8_t>(reason.code()), message, owner_bytes);
  return finish_control_message(std::move(builder), body);
}

ControlBuffer make_job_failed(uint64_t job_key, const std::string& name, const Status& reason,
                              const JobOwner& owner) {
  ControlBuffer builder;
  const auto text = builder.CreateString(name);
  const auto message = builder.CreateString(reason.message());
  const auto owner_bytes = builder.CreateVector(owner.data(), owner.size());
  const auto body = proto::CreateJobFailed(
      builder, job_key, text, static_cast<uint8_t>(reason.code()), message, owner_bytes);
  return finish_control_message(std::move(builder), body);
}

ControlBuffer make_job_ended(uint64_t job_key) {
  ControlBuffer builder;
  const auto body = proto::CreateJobEnded(builder, job_key);
  return finish_control_message(std::move(builder), body);
}

ControlBuffer make_operation_ready(const OperationKey& key, const Signature& signature) {
  ControlBuffer builder;
  flatbuffers::Offset<flatbuffers::String> codec;
  if (signature.codec.kind != CodecKind::None)
    codec = builder.CreateString(to_string(signature.codec));
  flatbuffers::Offset<flatbuffers::Vector<uint8_t>> update;
  if (signature.owner_step == OwnerStepKind::Optimizer) {
    const proto::UpdateEntry entry = to_entry(signature.update);
    update = builder.CreateVector(reinterpret_cast<const uint8_t*>(&entry), sizeof(entry));
  }
  const auto body = proto::CreateOperationReady(
      builder, key.job_key, key.tensor, key.step, signature.count, signature.group, signature.root,
      static_cast<uint8_t>(signature.collective), static_cast<uint8_t>(signature.dtype),
      static_cast<uint8_t>(signature.reduction), signature.given,
      static_cast<uint8_t>(signature.owner_step), codec, update, signature.updates);
  return finish_control_message(std::move(builder), body);
}

ControlBuffer make_duel_switch(uint64_t job_key, const DuelNews& news) {
  ControlBuffer builder;
  const auto body = proto::CreateDuelSwitch(builder, job_key, news.subject, news.rival, news.pays,
                                            news.gain, news.duels);
  return finish_control_message(std::move(builder), body);
}

ControlBuffer make_operation_query(const OperationKey& key) {
  ControlBuffer builder;
  const auto body = proto::CreateOperationQuery(builder, key.job_key, key.tensor, key.step);
  return finish_control_message(std::move(builder), body);
}

ControlBuffer make_operation_report(const OperationKey& key,
                                    std::span<const uint32_t> missing_ranks,
                                    const std::string& detail) {
  ControlBuffer builder;
  const auto ranks = builder.CreateVector(missing_ranks.data(), missing_ranks.size());
  const auto text = builder.CreateString(detail);
  const auto body =
      proto::CreateOperationReport(builder, key.job_key, key.tensor, key.step, ranks, text);
  return finish_control_message(std::move(builder), body);
}

ControlBuffer make_operation_overdue(const OperationKey& key, uint32_t timeout_ms,
                                     const std::string& description) {
  ControlBuffer builder;
  const auto text = builder.CreateString(description);
  const auto body =
      proto::CreateOperationOverdue(builder, key.job_key, key.tensor, key.step, timeout_ms, text);
  return finish_control_message(std::move(builder), body);
}

ControlBuffer make_facts_query(uint64_t job_key, uint64_t question, bool of_all_nodes,
                               const std::optional<TimelineSpan>& timeline) {
  ControlBuffer builder;
  flatbuffers::Offset<proto::TimelineSpan> span;
  if (timeline) {
    span = proto::CreateTimelineSpan(builder, timeline->steps, timeline->begin_ns, timeline->end_ns,
                                     timeline->bytes_max);
  }
  const auto body = proto::CreateFactsQuery(builder, job_key, question, of_all_nodes, span);
  return finish_control_message(std::move(builder), body);
}

std::optional<TimelineSpan> timeline_of(const proto::FactsQuery& query) {
  const proto::TimelineSpan* span = query.timeline();
  if (span == nullptr) return std::nullopt;
  return TimelineSpan{span->steps(), span->begin_ns(), span->end_ns(), span->bytes_max()};
}

ControlBuffer make_facts_reply(uint64_t job_key, uint64_t question, std::string_view json,
                               uint32_t part, uint32_t parts) {
  ControlBuffer builder(json.size() + 128);
  const auto text = builder.CreateString(json);
  const auto body = proto::CreateFactsReply(builder, job_key, question, text, part, parts);
  return finish_control_message(std::move(builder), body);
}

ControlBuffer make_clock_query(uint64_t job_key, uint64_t question, uint64_t asked_ns) {
  ControlBuffer builder;
  const auto body = proto::CreateClockQuery(builder, job_key, question, asked_ns);
  return finish_control_message(std::move(builder), body);
}

ControlBuffer make_clock_reply(const proto::ClockQuery& query, uint64_t received_ns,
                               uint64_t answered_ns) {
  ControlBuffer builder;
  const auto body = proto::CreateClockReply(builder, query.job_key(), query.question(),
                                            query.asked_ns(), received_ns, answered_ns);
  return finish_control_message(std::move(builder), body);
}

Status failure_status(uint8_t code, const flatbuffers::String* reason) {
  const bool is_known = code > 0 && code <= kStatusCodeMax;
  return {is_known ? static_cast<StatusCode>(code) : StatusCode::Internal,
          reason == nullptr ? std::string("no reason was given") : reason->str()};
}

}  // namespace braid
