// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <utility>

#include "engine/operation.h"

namespace braid {

// Where the messages for one rank of this node and its receives find each other: whichever comes
// first waits. A receive names a sender, or takes any, and a tag. What one rank sends with one tag
// is received in the order in which it was sent; a receive from any rank gets the message with its
// tag that came first. A look takes log(n) steps, for a trainer chooses what waits here. Control
// loop only.
class Mailbox {
 public:
  struct Letter {
    OperationKey key;
    uint32_t from = 0;
    uint64_t tag = 0;
  };
  struct Receive {
    uint64_t ticket = 0;
    uint32_t from = 0;  // or proto::kAnyRank
    uint64_t tag = 0;
  };

  // The ticket of the receive that takes it; nothing: it waits.
  std::optional<uint64_t> add_letter(const Letter& letter);
  // The letter that it takes; nothing: it waits.
  std::optional<OperationKey> add_receive(const Receive& receive);

 private:
  struct WaitingLetter {
    uint64_t turn = 0;
    OperationKey key;
  };
  struct WaitingReceive {
    uint64_t turn = 0;
    uint64_t ticket = 0;
  };
  using Channel = std::pair<uint64_t, uint32_t>;  // tag, sender

  uint64_t next_turn_ = 0;
  std::map<Channel, std::deque<WaitingReceive>> receives_;  // sender kAnyRank: from any
  std::map<Channel, std::deque<WaitingLetter>> letters_;
  std::map<uint64_t, std::map<uint64_t, uint32_t>> senders_;  // of these: by tag, then by turn
};

}  // namespace braid
