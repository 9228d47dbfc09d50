// SPDX-License-Identifier: Apache-2.0
#include "transfer.h"

#include <algorithm>
#include <cstring>

#include "fake_cuda/fake_cuda.h"

namespace fake_nccl {
namespace {

MailLane lane_of(const Operation& operation) {
  return operation.signature.kind == Kind::kPair ? MailLane::kPairs : MailLane::kCollectives;
}

std::byte* bytes_at(std::uintptr_t address, std::size_t bytes) {
  if (address == 0 || bytes == 0) return nullptr;
  void* const found = fake_cuda_bytes(address);
  if (found == nullptr) throw CUDA_ERROR_ILLEGAL_ADDRESS;
  return static_cast<std::byte*>(found);
}

void copy_bytes(std::byte* to, const std::byte* from, std::size_t bytes) {
  if (bytes > 0 && to != from) std::memcpy(to, from, bytes);
}

}  // namespace

Transfer::Transfer(Communicator& communicator, const std::vector<Operation>& operations)
    : communicator_(communicator) {
  for (const MailLane lane : {MailLane::kCollectives, MailLane::kPairs}) {
    for (int peer = 0; peer < communicator.ranks; ++peer) {
      const auto at = static_cast<std::size_t>(lane);
      outgoing_[at].push_back(
          {{}, &communicator.meeting.mailbox(communicator.rank, peer, lane), peer});
      incoming_[at].push_back(
          {{}, &communicator.meeting.mailbox(peer, communicator.rank, lane), peer});
    }
  }
  for (const Operation& operation : operations) add(operation);
}

void Transfer::add(const Operation& operation) {
  Running& running = running_.emplace_back(Running{operation,
                                                   bytes_at(operation.input, operation.bytes()),
                                                   bytes_at(operation.result, operation.bytes()),
                                                   {}});
  if (operation.signature.kind != Kind::kPair) return add_collective(running);
  if (operation.is_send) {
    send(operation.peer, operation, running.input, operation.bytes());
  } else {
    receive(operation.peer, operation, running.result, operation.bytes());
  }
}

void Transfer::add_collective(Running& running) {
  const Operation& operation = running.operation;
  const std::size_t bytes = operation.bytes();
  const bool is_root = operation.signature.root == communicator_.rank;
  running.parts.resize(static_cast<std::size_t>(communicator_.ranks));
  for (int peer = 0; peer < communicator_.ranks; ++peer) {
    if (peer == communicator_.rank) continue;
    // Greetings show that all ranks have come, and that they agree.
    send(peer, operation, nullptr, 0);
    receive(peer, operation, nullptr, 0);
    if (bytes == 0) continue;
    const auto receive_part = [&] {
      auto& part = running.parts[static_cast<std::size_t>(peer)];
      part.resize(bytes);
      receive(peer, operation, part.data(), bytes);
    };
    const std::size_t block = static_cast<std::size_t>(peer) * bytes;
    switch (operation.signature.kind) {
      case Kind::kAllReduce:
        send(peer, operation, running.input, bytes);
        receive_part();
        break;
      case Kind::kReduceScatter:
        send(peer, operation, running.input + block, bytes);
        receive_part();
        break;
      case Kind::kAllGather:
        send(peer, operation, running.input, bytes);
        receive(peer, operation, running.result + block, bytes);
        break;
      case Kind::kReduce:
        if (is_root) receive_part();
        if (operation.signature.root == peer) send(peer, operation, running.input, bytes);
        break;
      case Kind::kBroadcast:
        if (is_root) send(peer, operation, running.input, bytes);
        if (operation.signature.root == peer) receive(peer, operation, running.result, bytes);
        break;
      case Kind::kPair:
        break;
    }
  }
}

void Transfer::send(int peer, const Operation& operation, const std::byte* memory,
                    std::size_t bytes) {
  outgoing_[static_cast<std::size_t>(lane_of(operation))][static_cast<std::size_t>(peer)]
      .legs.push_back({operation.signature, const_cast<std::byte*>(memory), bytes});
  ++open_legs_;
}

void Transfer::receive(int peer, const Operation& operation, std::byte* memory, std::size_t bytes) {
  incoming_[static_cast<std::size_t>(lane_of(operation))][static_cast<std::size_t>(peer)]
      .legs.push_back({operation.signature, memory, bytes});
  ++open_legs_;
}

bool Transfer::step() {
  bool has_moved = false;
  for (auto& lane : outgoing_) {
    for (Route& route : lane) has_moved |= send_some(route);
  }
  for (auto& lane : incoming_) {
    for (Route& route : lane) has_moved |= take_some(route);
  }
  return has_moved;
}

bool Transfer::send_some(Route& route) {
  bool has_moved = false;
  while (!route.legs.empty()) {
    Leg& leg = route.legs.front();
    const std::uint64_t written = route.mailbox->written.load(std::memory_order_relaxed);
    if (written - route.mailbox->taken.load(std::memory_order_acquire) == kMessages) break;
    const std::size_t slot = written % kMessages;
    const std::size_t bytes = std::min(leg.bytes - leg.moved, kMessageBytes);
    route.mailbox->heads[slot] = {leg.signature, bytes, !leg.has_begun};
    if (bytes > 0) std::memcpy(route.mailbox->data[slot].data(), leg.memory + leg.moved, bytes);
    route.mailbox->written.store(written + 1, std::memory_order_release);
    leg.has_begun = has_moved = true;
    leg.moved += bytes;
    if (leg.moved == leg.bytes) {
      route.legs.pop_front();
      --open_legs_;
    }
  }
  return has_moved;
}

bool Transfer::take_some(Route& route) {
  bool has_moved = false;
  while (!route.legs.empty()) {
    Leg& leg = route.legs.front();
    const std::uint64_t taken = route.mailbox->taken.load(std::memory_order_relaxed);
    if (route.mailbox->written.load(std::memory_order_acquire) == taken) break;
    const std::size_t slot = taken % kMessages;
    const Mailbox::Head head = route.mailbox->heads[slot];
    if (head.signature != leg.signature || head.is_first == leg.has_begun ||
        head.bytes > leg.bytes - leg.moved) {
      communicator_.meeting.fail(
          NcclResult::InvalidUsage,
          "rank " + std::to_string(communicator_.rank) + " calls " + to_text(leg.signature) +
              ", rank " + std::to_string(route.peer) + " calls " + to_text(head.signature));
      break;
    }
    if (head.bytes > 0) {
      std::memcpy(leg.memory + leg.moved, route.mailbox->data[slot].data(), head.bytes);
    }
    route.mailbox->taken.store(taken + 1, std::memory_order_release);
    leg.has_begun = has_moved = true;
    leg.moved += head.bytes;
    if (leg.moved == leg.bytes) {
      route.legs.pop_front();
      --open_legs_;
    }
  }
  return has_moved;
}

void Transfer::finish() {
  for (const Running& running : running_) finish(running);
}

void Transfer::finish(const Running& running) const {
  const Operation& operation = running.operation;
  const std::size_t bytes = operation.bytes();
  const std::size_t own_block = static_cast<std::size_t>(communicator_.rank) * bytes;
  const bool is_root = operation.signature.root == communicator_.rank;
  if (bytes == 0) return;
  switch (operation.signature.kind) {
    case Kind::kAllReduce:
    case Kind::kReduceScatter:
    case Kind::kReduce: {
      if (operation.signature.kind == Kind::kReduce && !is_root) return;
      const bool is_scattered = operation.signature.kind == Kind::kReduceScatter;
      std::vector<const std::byte*> parts;
      for (const auto& part : running.parts) parts.push_back(part.data());
      parts[static_cast<std::size_t>(communicator_.rank)] =
          running.input + (is_scattered ? own_block : 0);
      return reduce(parts, running.result, operation.signature.count, operation.signature.type,
                    operation.signature.reduction);
    }
    case Kind::kAllGather:
      return copy_bytes(running.result + own_block, running.input, bytes);
    case Kind::kBroadcast:
      if (is_root) copy_bytes(running.result, running.input, bytes);
      return;
    case Kind::kPair:
      return;
  }
}

}  // namespace fake_nccl
