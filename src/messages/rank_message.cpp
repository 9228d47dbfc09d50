// SPDX-License-Identifier: Apache-2.0
#include "messages/rank_message.h"

#include <utility>

#include "messages/control_buffer.h"

namespace braid {
namespace {

flatbuffers::Offset<proto::RankLeft> write(ControlBuffer& builder, uint64_t job_key,
                                           const LeftRank& left) {
  const auto reason = left.reason.empty() ? 0 : builder.CreateString(left.reason);
  if (!left.sent) return proto::CreateRankLeft(builder, job_key, left.rank, reason);
  std::vector<uint32_t> receivers;
  std::vector<uint64_t> messages;
  for (const SentTo& one : *left.sent) {
    receivers.push_back(one.rank);
    messages.push_back(one.messages);
  }
  const auto to = builder.CreateVector(receivers);
  const auto sent = builder.CreateVector(messages);
  return proto::CreateRankLeft(builder, job_key, left.rank, reason, to, sent);
}

}  // namespace

ControlBuffer make_message_offered(uint64_t job_key, const MessageOffer& offer) {
  ControlBuffer builder;
  const MessageName& name = offer.name;
  const auto body = proto::CreateMessageOffered(builder, job_key, name.from, name.to, offer.tag,
                                                name.number, offer.bytes);
  return finish_control_message(std::move(builder), body);
}

ControlBuffer make_message_accepted(uint64_t job_key, const MessageName& name) {
  ControlBuffer builder;
  const auto body = proto::CreateMessageAccepted(builder, job_key, name.from, name.to, name.number);
  return finish_control_message(std::move(builder), body);
}

ControlBuffer make_rank_left(uint64_t job_key, const LeftRank& left) {
  ControlBuffer builder;
  const auto body = write(builder, job_key, left);
  return finish_control_message(std::move(builder), body);
}

ControlBuffer make_leavers_awaited(uint64_t job_key) {
  ControlBuffer builder;
  const auto body = proto::CreateLeaversAwaited(builder, job_key);
  return finish_control_message(std::move(builder), body);
}

ControlBuffer make_rank_has_left(uint64_t job_key, const LeftRank& left) {
  ControlBuffer builder;
  const auto written = write(builder, job_key, left);
  const auto body = proto::CreateRankHasLeft(builder, written);
  return finish_control_message(std::move(builder), body);
}

MessageOffer offer_of(const proto::MessageOffered& offered) {
  return {{offered.from(), offered.to(), offered.number()}, offered.tag(), offered.bytes()};
}

MessageName name_of(const proto::MessageAccepted& accepted) {
  return {accepted.from(), accepted.to(), accepted.number()};
}

LeftRank left_rank_of(const proto::RankLeft& left) {
  LeftRank read{left.rank()};
  if (left.reason() != nullptr) read.reason = left.reason()->str();
  const auto* const receivers = left.receivers();
  const auto* const sent = left.sent();
  if (receivers == nullptr || sent == nullptr || receivers->size() != sent->size()) return read;
  read.sent.emplace();
  for (uint32_t i = 0; i < sent->size(); ++i)
    read.sent->push_back({receivers->Get(i), sent->Get(i)});
  return read;
}

}  // namespace braid
