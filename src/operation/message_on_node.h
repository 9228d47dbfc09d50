// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>

#include "messages/rank_message.h"
#include "operation/message_end.h"

namespace braid {

// Where a message of a table is: see MessageTable.
enum class MessageState : uint8_t { Offered, Matched, Running, Ended };

// One message of a table, with those of its ends that are on this node.
struct MessageOnNode {
  MessageName name;
  uint64_t tag = 0;
  uint64_t bytes = 0;
  MessageState state = MessageState::Offered;
  std::optional<MessageEnd> sender;
  std::optional<MessageEnd> receiver;  // once matched
  std::optional<uint64_t> result_offset;
  uint64_t went_ns = 0;  // its bytes may travel since then; 0: not yet
  bool is_retired = false;

  MessageOffer offer() const { return {name, tag, bytes}; }
  // Its last end here.
  uint64_t submitted_ns() const {
    return std::max(sender ? sender->submitted_ns : 0, receiver ? receiver->submitted_ns : 0);
  }
};

}  // namespace braid
