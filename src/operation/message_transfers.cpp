// SPDX-License-Identifier: Apache-2.0
#include "operation/message_transfers.h"

#include <array>
#include <vector>

#include "engine/exchange.h"
#include "engine/route.h"
#include "engine/splits.h"

namespace braid {
namespace {

// In the exchange the sender has the number 0, the receiver 1.
constexpr uint32_t kSender = 0;
constexpr uint32_t kReceiver = 1;

std::shared_ptr<const Splits> splits_of(uint64_t to_receiver, uint64_t from_sender) {
  const std::array<uint64_t, 2> to{0, to_receiver};
  const std::array<uint64_t, 2> from{from_sender, 0};
  return std::make_shared<const Splits>(Splits{SplitCounts(to), SplitCounts(from)});
}

std::shared_ptr<Ring> two_ranks(uint32_t nodes, uint32_t self) {
  auto ring = std::make_shared<Ring>();
  ring->nodes = nodes;
  ring->self = self;
  ring->world_size = 2;
  ring->ranks_of_node.assign(nodes, 2 / nodes);
  ring->block_of_rank = {0, 1};
  ring->routes = basic_routes(nodes, self);
  return ring;
}

}  // namespace

Operation MessageTransfers::within_node(const OperationKey& key, uint64_t bytes,
                                        const uint8_t* input, uint8_t* result) const {
  const std::shared_ptr<const Ring> ring = two_ranks(1, 0);
  auto exchange = std::make_shared<Exchange>(*ring, 1);
  exchange->add(kSender, splits_of(bytes, 0), input);
  exchange->add(kReceiver, splits_of(0, bytes), nullptr);
  const std::array<uint8_t*, 2> results{nullptr, result};
  exchange->place(results);
  return made(key, ring, std::move(exchange));
}

Operation MessageTransfers::to(uint32_t place, const OperationKey& key, uint64_t bytes,
                               const uint8_t* input) {
  const std::shared_ptr<const Ring>& ring = ring_of(job_.ring->self, place);
  auto exchange = std::make_shared<Exchange>(*ring, 1);
  exchange->add(0, splits_of(bytes, 0), input);
  const std::array<uint8_t*, 1> results{nullptr};
  exchange->place(results);
  return made(key, ring, std::move(exchange));
}

Operation MessageTransfers::from(uint32_t place, const OperationKey& key, uint64_t bytes,
                                 uint8_t* result) {
  const std::shared_ptr<const Ring>& ring = ring_of(place, job_.ring->self);
  auto exchange = std::make_shared<Exchange>(*ring, 1);
  exchange->add(0, splits_of(0, bytes), nullptr);
  const std::array<uint8_t*, 1> results{result};
  exchange->place(results);
  return made(key, ring, std::move(exchange));
}

const std::shared_ptr<const Ring>& MessageTransfers::ring_of(uint32_t sender, uint32_t receiver) {
  const bool is_sender = sender == job_.ring->self;
  std::shared_ptr<const Ring>& kept = is_sender ? to_[receiver] : from_[sender];
  if (kept == nullptr) {
    auto ring = two_ranks(2, is_sender ? kSender : kReceiver);
    ring->members = {job_.ring->members[sender], job_.ring->members[receiver]};
    kept = std::move(ring);
  }
  return kept;
}

Operation MessageTransfers::made(const OperationKey& key, std::shared_ptr<const Ring> ring,
                                 std::shared_ptr<const Exchange> exchange) const {
  Operation operation;
  operation.key = key;
  operation.collective = Collective::AllToAll;
  operation.dtype = DataType::Uint8;
  operation.ring = std::move(ring);
  operation.memory = memory_;
  operation.exchange = std::move(exchange);
  return operation;
}

}  // namespace braid
