// SPDX-License-Identifier: Apache-2.0
#include "operation/mailbox.h"

#include "proto/ring.h"

namespace braid {
namespace {

// Takes the first of a queue, and the queue with the last one.
template <typename Queues>
auto take_first(Queues& queues, typename Queues::iterator queue) {
  const auto first = queue->second.front();
  queue->second.pop_front();
  if (queue->second.empty()) queues.erase(queue);
  return first;
}

}  // namespace

std::optional<uint64_t> Mailbox::add_letter(const Letter& letter) {
  const auto exact = receives_.find({letter.tag, letter.from});
  const auto any = receives_.find({letter.tag, proto::kAnyRank});
  const bool has_exact = exact != receives_.end();
  const bool has_any = any != receives_.end();
  if (has_exact || has_any) {
    const bool takes_exact =
        has_exact && (!has_any || exact->second.front().turn < any->second.front().turn);
    return take_first(receives_, takes_exact ? exact : any).ticket;
  }
  const uint64_t turn = next_turn_++;
  letters_[{letter.tag, letter.from}].push_back({turn, letter.key});
  senders_[letter.tag].emplace(turn, letter.from);
  return std::nullopt;
}

std::optional<OperationKey> Mailbox::add_receive(const Receive& receive) {
  const auto senders = senders_.find(receive.tag);
  uint32_t from = receive.from;
  if (from == proto::kAnyRank && senders != senders_.end()) from = senders->second.begin()->second;
  const auto letters = letters_.find({receive.tag, from});
  if (letters == letters_.end()) {
    receives_[{receive.tag, receive.from}].push_back({next_turn_++, receive.ticket});
    return std::nullopt;
  }
  const WaitingLetter letter = take_first(letters_, letters);
  senders->second.erase(letter.turn);
  if (senders->second.empty()) senders_.erase(senders);
  return letter.key;
}

}  // namespace braid
