// SPDX-License-Identifier: Apache-2.0
#include "messages/rank_message.h"

#include <utility>

#include "messages/control_buffer.h"

namespace braid {

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

MessageOffer offer_of(const proto::MessageOffered& offered) {
  return {{offered.from(), offered.to(), offered.number()}, offered.tag(), offered.bytes()};
}

MessageName name_of(const proto::MessageAccepted& accepted) {
  return {accepted.from(), accepted.to(), accepted.number()};
}

}  // namespace braid
