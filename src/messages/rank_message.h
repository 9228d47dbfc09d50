// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "messages/control_messages.h"
#include "proto/control_generated.h"

namespace braid {

// A message of one rank for another one, as nodes tell each other of it: its ends, and its number
// among those from the one to the other.
struct MessageName {
  uint32_t from = 0;
  uint32_t to = 0;
  uint64_t number = 0;
};
struct MessageOffer {
  MessageName name;
  uint64_t tag = 0;
  uint64_t bytes = 0;
};

ControlBuffer make_message_offered(uint64_t job_key, const MessageOffer& offer);
ControlBuffer make_message_accepted(uint64_t job_key, const MessageName& name);
MessageOffer offer_of(const proto::MessageOffered& offered);
MessageName name_of(const proto::MessageAccepted& accepted);

}  // namespace braid
