// SPDX-License-Identifier: Apache-2.0
#include "operation/message_errors.h"

#include <fmt/format.h>

#include "proto/ring.h"

namespace braid {

Status MessageErrors::impossible(uint32_t place, const MessageOffer& offer) const {
  return make_status(StatusCode::Protocol,
                     "job '{}': node '{}' offers a message of {} bytes from rank {} to rank {}, "
                     "which cannot be",
                     job_.name, name_of_node_(place), offer.bytes, offer.name.from, offer.name.to);
}

Status MessageErrors::offered_twice(uint32_t place) const {
  return make_status(StatusCode::Protocol, "job '{}': node '{}' offers a message twice", job_.name,
                     name_of_node_(place));
}

Status MessageErrors::not_offered(uint32_t place) const {
  return make_status(StatusCode::Protocol,
                     "job '{}': node '{}' accepts a message that was not offered to it", job_.name,
                     name_of_node_(place));
}

Status MessageErrors::unlike(const MessageOffer& offer, uint64_t expected_bytes) const {
  return make_status(StatusCode::Mismatch,
                     "job '{}': {} sends {} bytes with tag {} to {}, which expects {} bytes",
                     job_.name, describe_rank(offer.name.from), offer.bytes, offer.tag,
                     describe_rank(offer.name.to), expected_bytes);
}

Status MessageErrors::no_room(const Status& reason, const MessageEnd& receive) const {
  return reason.with_context(fmt::format("job '{}': no room for the result of the {}", job_.name,
                                         describe(receive, false)));
}

Status MessageErrors::not_received(const MessageOffer& offer, const MessageSenders& senders) const {
  return make_status(StatusCode::JobFailed,
                     "{} without the receive of {} bytes, tag {}, that {} has sent it",
                     describe_leaver(offer.name.to, senders), offer.bytes, offer.tag,
                     describe_rank(offer.name.from));
}

Status MessageErrors::never_sent(const MessageEnd& receive, const MessageSenders& senders) const {
  const std::string who = receive.peer == proto::kAnyRank
                              ? fmt::format("job '{}': all other ranks left the job", job_.name)
                              : describe_leaver(receive.peer, senders);
  return make_status(StatusCode::JobFailed, "{} without a message for the {}", who,
                     describe(receive, false));
}

Status MessageErrors::overdue(const MessageEnd& end, bool is_send,
                              const std::string& reason) const {
  return make_status(StatusCode::DeadlineExceeded, "job '{}': the {} did not end within {} ms: {}",
                     job_.name, describe(end, is_send), end.timeout_ms, reason);
}

std::string MessageErrors::describe(const MessageEnd& end, bool is_send) const {
  const std::string own = describe_rank(job_.local_ranks[end.local_rank]);
  const std::string other =
      end.peer == proto::kAnyRank ? std::string("any rank") : describe_rank(end.peer);
  return fmt::format("{} of {} bytes, tag {}, {} {} {} {}", is_send ? "send" : "receive", end.bytes,
                     end.tag, is_send ? "from" : "at", own, is_send ? "to" : "from", other);
}

std::string MessageErrors::describe_rank(uint32_t rank) const {
  return fmt::format("rank {} on node '{}'", rank, name_of_node_(places_.place_of(rank)));
}

std::string MessageErrors::describe_leaver(uint32_t rank, const MessageSenders& senders) const {
  const std::string& reason = senders.reason(rank);
  return fmt::format("job '{}': {} left the job{}", job_.name, describe_rank(rank),
                     reason.empty() ? std::string() : fmt::format(" ({})", reason));
}

}  // namespace braid
