// SPDX-License-Identifier: Apache-2.0
#include "operation/message_senders.h"

#include <algorithm>

#include "proto/ring.h"

namespace braid {

uint64_t MessageSenders::come_from(uint32_t rank, uint32_t local_rank) const {
  const auto found = come_.find(pair_of(rank, local_rank));
  return found == come_.end() ? 0 : found->second;
}

bool MessageSenders::on_message(uint32_t from, uint32_t local_rank) {
  const uint64_t come = ++come_[pair_of(from, local_rank)];
  const auto left = left_.find(from);
  if (left == left_.end() || come != left->second.sent[local_rank]) return false;
  ++spent_[local_rank];
  return true;
}

bool MessageSenders::on_left(uint32_t rank, const std::string& reason, const SentMessages& sent) {
  const auto [position, is_new] = left_.try_emplace(rank);
  if (!is_new) return false;
  Left& left = position->second;
  left.reason = reason;
  left.sent.resize(job_.local_ranks.size(), 0);
  for (uint32_t i = 0; i < job_.local_ranks.size(); ++i) {
    const auto told = std::ranges::find(sent, job_.local_ranks[i], &SentTo::rank);
    if (told != sent.end()) left.sent[i] = told->messages;
    if (job_.local_ranks[i] != rank && come_from(rank, i) >= left.sent[i]) ++spent_[i];
  }
  return true;
}

bool MessageSenders::may_send(uint32_t rank, uint32_t local_rank) const {
  if (rank == proto::kAnyRank) return spent_[local_rank] + 1 < job_.ring->world_size;
  const auto left = left_.find(rank);
  return left == left_.end() || come_from(rank, local_rank) < left->second.sent[local_rank];
}

}  // namespace braid
