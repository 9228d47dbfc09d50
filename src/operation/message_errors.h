// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <utility>

#include "base/status.h"
#include "messages/rank_message.h"
#include "operation/message_end.h"
#include "operation/message_senders.h"
#include "operation/rank_places.h"

namespace braid {

// Why a job ends because of a message: errors that name both ends, and their nodes. Control loop
// only.
class MessageErrors {
 public:
  // `job` and `places` outlive it.
  MessageErrors(const JobOnNode& job, const RankPlaces& places,
                std::function<std::string(uint32_t place)> name_of_node)
      : job_(job), places_(places), name_of_node_(std::move(name_of_node)) {}

  Status impossible(uint32_t place, const MessageOffer& offer) const;
  Status offered_twice(uint32_t place) const;
  Status not_offered(uint32_t place) const;
  Status unlike(const MessageOffer& offer, uint64_t expected_bytes) const;
  Status no_room(const Status& reason, const MessageEnd& receive) const;
  // A rank has left, and this message was for it.
  Status not_received(const MessageOffer& offer, const MessageSenders& senders) const;
  // Nobody sends any more what it waits for.
  Status never_sent(const MessageEnd& receive, const MessageSenders& senders) const;
  Status overdue(const MessageEnd& end, bool is_send, const std::string& reason) const;

 private:
  std::string describe(const MessageEnd& end, bool is_send) const;
  std::string describe_rank(uint32_t rank) const;
  std::string describe_leaver(uint32_t rank, const MessageSenders& senders) const;

  const JobOnNode& job_;
  const RankPlaces& places_;
  const std::function<std::string(uint32_t place)> name_of_node_;
};

}  // namespace braid
