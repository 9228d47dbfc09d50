// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "explain/node_facts.h"

namespace braid {

// An operation that has not ended on some node of a job: who has submitted it, and who has not.
// Field names are those of the JSON.
struct PendingOperation {
  struct Rank {
    uint32_t rank = 0;
    std::string node;
  };
  std::string tensor;  // the first one of those that are merged
  uint64_t step = 0;
  std::string collective;
  uint64_t tensors = 1;
  uint64_t bytes = 0;               // that one rank gives
  uint64_t since_ns = 0;            // on the node that has it for the longest time
  std::vector<uint32_t> submitted;  // ascending
  std::vector<Rank> missing;        // that have not submitted it, ascending
  // Ranks about which nothing is known: their node has not answered, has more pending operations
  // than it tells, or keeps their submissions back until all nodes have a plan.
  std::vector<uint32_t> unknown;
};

// What any node has told of, the longest first.
std::vector<PendingOperation> pending_operations(const JobFacts& facts);

// A send or a receive of a single rank that has not ended. Field names are those of the JSON.
struct WaitingMessage {
  static constexpr int64_t kAnyRank = NodeFacts::Message::kAnyRank;

  std::string end;  // "send", "receive"
  uint32_t rank = 0;
  std::string node;         // of this rank
  int64_t peer = kAnyRank;  // the rank that it waits for
  std::string peer_node;    // empty: not known, or any
  uint64_t tag = 0;
  uint64_t bytes = 0;
  uint64_t since_ns = 0;
  bool is_on_its_way = false;  // the other end is there: it waits for memory, or for bytes
};

// What any node has told of, the longest first.
std::vector<WaitingMessage> waiting_messages(const JobFacts& facts);

// "send of 300 B from rank 0 on a to rank 3 on b, tag 7"
std::string describe_message(const WaitingMessage& message);

// "all-reduce of 'layer4.weight' and 3 more, step 12 (25 MB)"
std::string describe_operation(const PendingOperation& operation);
// "rank 3 on b has", "ranks 3 on b, 4 on c and 2 more have": who has not …
std::string describe_missing_ranks(const std::vector<PendingOperation::Rank>& missing);

// An object: {"job", "world_size", "operations": […], "operations_pending", "messages": […],
// "messages_pending", "nodes_missing"}.
std::string pending_json(const JobFacts& facts, const std::vector<PendingOperation>& operations);

}  // namespace braid
