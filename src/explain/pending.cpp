// SPDX-License-Identifier: Apache-2.0
#include "explain/pending.h"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/amount.h"
#include "explain/job_view.h"

namespace braid {

NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(PendingOperation::Rank, rank, node)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(PendingOperation, tensor, step, collective, tensors, bytes,
                                   since_ns, submitted, missing, unknown)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(WaitingMessage, end, rank, node, peer, peer_node, tag, bytes,
                                   since_ns, is_on_its_way)

namespace {

constexpr size_t kRanksNamed = 8;

using PendingKey = std::tuple<std::string, uint64_t, std::string, uint64_t>;

PendingKey key_of(const NodeFacts::Pending& one) {
  return {one.tensor, one.step, one.collective, one.tensors};
}

// What one node says of operations, to be looked up.
struct NodeView {
  const NodeFacts& facts;
  std::map<PendingKey, const NodeFacts::Pending*> pending;
  std::set<std::pair<std::string_view, uint64_t>> ended;
  bool tells_all = false;  // of its pending operations

  explicit NodeView(const NodeFacts& node)
      : facts(node), tells_all(node.pending.size() >= node.operations_pending) {
    for (const NodeFacts::Pending& one : node.pending) pending.emplace(key_of(one), &one);
    for (const NodeFacts::Ended& one : node.ended) ended.emplace(one.tensor, one.step);
  }
};

bool holds(const std::vector<uint32_t>& ranks, uint32_t rank) {
  return std::ranges::find(ranks, rank) != ranks.end();
}

// Adds what the node says of its own ranks.
void add_ranks(PendingOperation& operation, const PendingKey& key, const NodeView& node) {
  const auto found = node.pending.find(key);
  const bool has_ended = node.ended.contains({operation.tensor, operation.step});
  for (const uint32_t rank : node.facts.ranks) {
    const bool has_submitted =
        has_ended || (found != node.pending.end() && holds(found->second->submitted, rank));
    const bool is_known = found != node.pending.end() || node.tells_all;
    if (has_submitted)
      operation.submitted.push_back(rank);
    else if (!is_known || holds(node.facts.held, rank))
      operation.unknown.push_back(rank);
    else
      operation.missing.push_back({rank, node.facts.node});
  }
}

// The ranks of nodes that have not answered.
std::vector<uint32_t> ranks_of_others(const JobFacts& facts) {
  std::set<uint32_t> told;
  uint32_t world_size = 0;
  for (const NodeFacts& node : facts.nodes) {
    told.insert(node.ranks.begin(), node.ranks.end());
    world_size = std::max(world_size, node.world_size);
  }
  std::vector<uint32_t> others;
  // A number from elsewhere; no job is larger.
  for (uint32_t rank = 0; rank < std::min<uint32_t>(world_size, 1 << 16); ++rank) {
    if (!told.contains(rank)) others.push_back(rank);
  }
  return others;
}

}  // namespace

std::vector<PendingOperation> pending_operations(const JobFacts& facts) {
  std::vector<NodeView> nodes;
  std::map<PendingKey, PendingOperation> operations;
  for (const NodeFacts& node : facts.nodes) {
    nodes.emplace_back(node);
    for (const NodeFacts::Pending& one : node.pending) {
      PendingOperation& operation = operations[key_of(one)];
      operation.tensor = one.tensor;
      operation.step = one.step;
      operation.collective = one.collective;
      operation.tensors = one.tensors;
      operation.bytes = std::max(operation.bytes, one.bytes);
      operation.since_ns = std::max(operation.since_ns, one.since_ns);
    }
  }
  const std::vector<uint32_t> others = ranks_of_others(facts);
  std::vector<PendingOperation> list;
  for (auto& [key, operation] : operations) {
    for (const NodeView& node : nodes) add_ranks(operation, key, node);
    operation.unknown.insert(operation.unknown.end(), others.begin(), others.end());
    std::ranges::sort(operation.submitted);
    std::ranges::sort(operation.unknown);
    std::ranges::sort(operation.missing, {}, &PendingOperation::Rank::rank);
    list.push_back(std::move(operation));
  }
  std::ranges::stable_sort(list, std::ranges::greater(), &PendingOperation::since_ns);
  return list;
}

std::vector<WaitingMessage> waiting_messages(const JobFacts& facts) {
  std::map<int64_t, std::string> nodes;  // by rank
  for (const NodeFacts& node : facts.nodes) {
    for (const uint32_t rank : node.ranks) nodes[rank] = node.node;
  }
  std::vector<WaitingMessage> list;
  for (const NodeFacts& node : facts.nodes) {
    for (const NodeFacts::Message& one : node.messages) {
      const auto peer = nodes.find(one.peer);
      list.push_back({one.is_send ? "send" : "receive", one.rank, node.node, one.peer,
                      peer == nodes.end() ? std::string() : peer->second, one.tag, one.bytes,
                      one.since_ns, one.is_on_its_way});
    }
  }
  std::ranges::stable_sort(list, std::ranges::greater(), &WaitingMessage::since_ns);
  return list;
}

std::string describe_message(const WaitingMessage& message) {
  const bool is_send = message.end == "send";
  const std::string peer = message.peer == WaitingMessage::kAnyRank ? std::string("any rank")
                           : message.peer_node.empty()
                               ? fmt::format("rank {}", message.peer)
                               : fmt::format("rank {} on {}", message.peer, message.peer_node);
  return fmt::format("{} of {} {} rank {} on {} {} {}, tag {}", message.end,
                     format_amount(message.bytes), is_send ? "from" : "at", message.rank,
                     message.node, is_send ? "to" : "from", peer, message.tag);
}

std::string describe_operation(const PendingOperation& operation) {
  const std::string others =
      operation.tensors > 1 ? fmt::format(" and {} more", operation.tensors - 1) : std::string();
  return fmt::format("{} of '{}'{}, step {} ({})", operation.collective, operation.tensor, others,
                     operation.step, format_amount(operation.bytes));
}

std::string describe_missing_ranks(const std::vector<PendingOperation::Rank>& missing) {
  std::string text = missing.size() == 1 ? "rank " : "ranks ";
  const size_t named = std::min(missing.size(), kRanksNamed);
  for (size_t i = 0; i < named; ++i) {
    const bool is_last = i + 1 == missing.size();
    text += (i == 0    ? ""
             : is_last ? " and "
                       : ", ") +
            fmt::format("{} on {}", missing[i].rank, missing[i].node);
  }
  if (named < missing.size()) text += fmt::format(" and {} more", missing.size() - named);
  return text + (missing.size() == 1 ? " has" : " have");
}

std::string pending_json(const JobFacts& facts, const std::vector<PendingOperation>& operations) {
  uint64_t pending = 0;
  uint64_t messages = 0;
  uint32_t world_size = 0;
  for (const NodeFacts& node : facts.nodes) {
    pending = std::max(pending, node.operations_pending);
    messages += node.messages_pending;
    world_size = std::max(world_size, node.world_size);
  }
  return nlohmann::ordered_json({{"job", facts.job},
                                 {"world_size", world_size},
                                 {"operations_pending", pending},
                                 {"operations", nlohmann::json(operations)},
                                 {"messages_pending", messages},
                                 {"messages", nlohmann::json(waiting_messages(facts))},
                                 {"nodes_missing", facts.missing}})
      .dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

}  // namespace braid
