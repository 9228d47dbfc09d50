// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <unordered_map>
#include <utility>

#include "engine/operation.h"
#include "messages/rank_message.h"
#include "operation/job_numbers.h"
#include "operation/message_on_node.h"
#include "timeline/loop_timeline.h"

namespace braid {

// A send or a receive of a rank of this node that has not ended.
struct PendingMessage {
  bool is_send = false;
  uint32_t rank = 0;
  uint32_t peer = 0;  // of a receive, proto::kAnyRank: any
  uint64_t tag = 0;
  uint64_t bytes = 0;
  uint64_t submitted_ns = 0;
  bool is_on_its_way = false;  // the other end is there
};

// What the messages of one job have come to on this node. Control loop only.
class MessageLog {
 public:
  // By the tensor of a message's key: "messages from rank 0 to rank 3".
  using Names = std::unordered_map<uint64_t, std::shared_ptr<const std::string>>;

  // `timeline`: of the control loop; nullptr: nothing is noted.
  MessageLog(std::shared_ptr<JobNumbers> numbers, LoopTimeline* timeline)
      : numbers_(std::move(numbers)), timeline_(timeline) {}

  void on_submit(bool is_send) { change_pending(is_send, 1); }
  // An end of a message; `bytes`: of the message.
  void on_end(bool is_send, uint64_t bytes);
  // A receive whose rank has left.
  void on_given_up() { change_pending(false, -1); }
  // The message has ended on this node.
  void record(const OperationKey& key, const MessageOnNode& message, uint64_t end_ns);
  // As of an operation of one tensor. `went_ns`: 0: not yet.
  TimelineEvent span_of(const OperationKey& key, const MessageName& name, uint64_t begin_ns,
                        uint64_t went_ns);

  uint64_t pending() const { return of(true).pending.get() + of(false).pending.get(); }
  // All that spans were made of have one.
  const Names& names() const { return names_; }

 private:
  JobNumbers::MessageEnds& of(bool is_send) const {
    return is_send ? numbers_->sends : numbers_->receives;
  }
  void change_pending(bool is_send, int64_t by);

  const std::shared_ptr<JobNumbers> numbers_;
  LoopTimeline* const timeline_;
  Names names_;
};

}  // namespace braid
