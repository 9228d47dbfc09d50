// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

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

// How many messages a rank has sent to which ranks.
struct SentTo {
  uint32_t rank = 0;
  uint64_t messages = 0;
  bool operator==(const SentTo&) const = default;
};
using SentMessages = std::vector<SentTo>;

// A rank that has left its job.
struct LeftRank {
  uint32_t rank = 0;
  std::string reason{};                // in its own words, if it gave any
  std::optional<SentMessages> sent{};  // nothing: its node does not say
};

ControlBuffer make_message_offered(uint64_t job_key, const MessageOffer& offer);
ControlBuffer make_message_accepted(uint64_t job_key, const MessageName& name);
ControlBuffer make_rank_left(uint64_t job_key, const LeftRank& left);
ControlBuffer make_leavers_awaited(uint64_t job_key);
ControlBuffer make_rank_has_left(uint64_t job_key, const LeftRank& left);
MessageOffer offer_of(const proto::MessageOffered& offered);
MessageName name_of(const proto::MessageAccepted& accepted);
LeftRank left_rank_of(const proto::RankLeft& left);

}  // namespace braid
