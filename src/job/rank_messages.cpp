// SPDX-License-Identifier: Apache-2.0
#include "job/rank_messages.h"

#include "job/job.h"
#include "messages/rank_message.h"

namespace braid {

bool is_of_rank_message(const proto::ControlMessage& message, uint64_t& job_key) {
  if (const auto* const offered = message.body_as_MessageOffered(); offered != nullptr) {
    job_key = offered->job_key();
    return true;
  }
  const auto* const accepted = message.body_as_MessageAccepted();
  if (accepted != nullptr) job_key = accepted->job_key();
  return accepted != nullptr;
}

void take_rank_message(Job& job, const Peer& from, const proto::ControlMessage& message) {
  const auto place = job.place_of_other(from);
  if (!place) return;
  if (const auto* const offered = message.body_as_MessageOffered(); offered != nullptr) {
    job.check(job.messages().on_offer(*place, offer_of(*offered)));
  } else if (const auto* const accepted = message.body_as_MessageAccepted(); accepted != nullptr) {
    job.check(job.messages().on_accept(*place, name_of(*accepted)));
  }
}

}  // namespace braid
