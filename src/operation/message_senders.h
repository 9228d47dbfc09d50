// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "messages/rank_message.h"
#include "operation/job_on_node.h"

namespace braid {

// Which ranks of a job may still send messages to the ranks of this node: those that have not left
// the job, and those whose last messages are still to come. A rank that leaves says how many
// messages it has sent to whom, so it does not matter what this node hears first. Control loop
// only.
class MessageSenders {
 public:
  // `job` outlives it.
  explicit MessageSenders(const JobOnNode& job) : job_(job), spent_(job.local_ranks.size(), 0) {}

  // A message for one of the ranks here. True: it was the last one of a rank that has left.
  bool on_message(uint32_t from, uint32_t local_rank);
  // `sent`: to which ranks; all that a rank of this node has sent is here already. False: this is
  // known.
  bool on_left(uint32_t rank, const std::string& reason, const SentMessages& sent);

  bool has_left(uint32_t rank) const { return left_.contains(rank); }
  // In its own words, if it gave any.
  const std::string& reason(uint32_t rank) const { return left_.at(rank).reason; }
  // How many messages have come.
  uint64_t come_from(uint32_t rank, uint32_t local_rank) const;
  // proto::kAnyRank: any but the receiver itself.
  bool may_send(uint32_t rank, uint32_t local_rank) const;

 private:
  struct Left {
    std::string reason;
    std::vector<uint64_t> sent;  // by local rank
  };

  static uint64_t pair_of(uint32_t rank, uint32_t local_rank) {
    return uint64_t{rank} << 32 | local_rank;
  }

  const JobOnNode& job_;
  std::unordered_map<uint32_t, Left> left_;
  std::unordered_map<uint64_t, uint64_t> come_;  // messages, by pair_of
  std::vector<uint32_t> spent_;                  // by local rank: ranks that send nothing more
};

}  // namespace braid
