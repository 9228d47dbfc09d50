// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "ipc/user_quotas.h"
#include "messages/rank_message.h"
#include "operation/mailbox.h"
#include "operation/message_end.h"
#include "operation/message_errors.h"
#include "operation/message_log.h"
#include "operation/message_on_node.h"
#include "operation/message_senders.h"
#include "operation/message_transfers.h"
#include "operation/operation_engines.h"
#include "operation/rank_places.h"
#include "operation/result_memory.h"

namespace braid {

// Where one local rank's messages end: its done ring. `source`: who has sent; of a send 0.
class MessageSink {
 public:
  virtual ~MessageSink() = default;
  virtual void publish_message(uint64_t ticket, uint64_t result_offset, uint64_t result_bytes,
                               uint32_t source) = 0;
};

// What a table works with.
struct MessageServices {
  OperationEngines& engines;
  OperationEvents& operations;      // told of all operations that are no messages
  std::vector<MessageSink*> sinks;  // by local rank
  std::function<Status(uint32_t place, const MessageOffer&)> offer;
  std::function<Status(uint32_t place, const MessageName&)> accept;
  // Whether this node can send to the node at this place. Where it cannot yet, it begins to see to
  // that, and on_reached() follows.
  std::function<bool(uint32_t place)> reach;
  std::function<std::string(uint32_t place)> name_of_node;
  // From now on this node wants to hear of the ranks of other nodes that have left: once.
  std::function<Status()> await_leavers;
  std::function<void(const Status&)> fail;  // the job ends
  // Gets what the messages come to.
  std::shared_ptr<JobNumbers> numbers = std::make_shared<JobNumbers>();
  LoopTimeline* timeline = nullptr;  // of the control loop; nullptr: nothing is noted
  std::function<uint64_t()> now_ns = [] { return SystemClock().now_ns(); };
};

// The messages between two ranks of one job of which one is on this node, from the first end's
// submission until the local ends are given back.
//
//   offered   --the receiver's node has both ends: its result has a place--> matched
//   matched   --its memory is there: the receiver's engine started, accepted--> running
//   offered   --the sender's node hears that it is accepted: engine started--> running
//   running   --engine done: published--> ended
//   ended     --engine retired and released by the local ends--> (forgotten)
//
// The sender's node numbers the messages from one rank to another one and offers them in that
// order; the receiver's node finds the receive for each. So one node decides, also where a receive
// takes messages of any rank.
//
// Any error that a function returns is the end of the job. Control loop only.
class MessageTable final : public OperationEvents {
 public:
  // Messages for ranks of this node that none of them receives yet.
  static constexpr size_t kOfferedMax = 1 << 16;
  // What one of them takes, about; they count in steps.
  static constexpr uint64_t kCostBytes = 512;
  static constexpr uint64_t kStepBytes = 256 << 10;
  // See OperationTable.
  static constexpr size_t kLocalRunningMax = 64;

  // `job` outlives it.
  MessageTable(const JobOnNode& job, std::shared_ptr<ResultMemory> memory,
               MessageServices services);

  // Messages that nobody receives yet count there.
  void set_charge(UserCharge charge) { charge_ = std::move(charge); }
  Status send(const MessageEnd& end);
  Status receive(const MessageEnd& end);
  Status on_offer(uint32_t place, const MessageOffer& offer);
  Status on_accept(uint32_t place, const MessageName& name);
  // More memory has come, or none will: see ResultMemory.
  Status on_memory(const Status& growth);
  Status on_reached();
  void on_done(const OperationKey& key) override;
  void on_retired(const OperationKey& key) override;
  Status release(uint32_t local_rank, uint64_t ticket);
  // `reason`: what it said, if anything.
  Status on_rank_left(uint32_t local_rank, const std::string& reason);
  // A rank of another node.
  Status on_other_left(const LeftRank& left);
  // To ranks of other nodes, by a rank that leaves.
  SentMessages sent_by(uint32_t local_rank) const;
  void drop_sink(uint32_t local_rank) { services_.sinks[local_rank] = nullptr; }

  // Why the job ends, if a deadline has passed: once.
  Status check_deadlines(uint64_t now_ns);
  size_t unfinished() const { return log_.pending(); }  // ends that are not published yet
  std::vector<PendingMessage> pending() const;
  // Those that have not ended, for the timeline: see TimelineSource. Call names() after it.
  std::vector<TimelineEvent> unfinished_spans();
  const MessageLog::Names& names() const { return log_.names(); }
  size_t size() const { return messages_.size() + receives_.size(); }

 private:
  using Message = MessageOnNode;
  using State = MessageState;
  using Messages = std::unordered_map<OperationKey, Message, OperationKeyHash>;
  using LocalTicket = std::pair<uint32_t, uint64_t>;  // local rank, ticket
  struct LocalTicketHash {
    size_t operator()(const LocalTicket& ticket) const {
      return std::hash<uint64_t>()(ticket.second * 65'537 + ticket.first);
    }
  };

  // Ends of which the other one is there, too, are on their way.
  using PendingVisitor =
      std::function<void(const MessageEnd& end, bool is_send, bool has_other_end)>;

  OperationKey key_of(const MessageName& name) const;
  Status offer_waiting();
  Status arrive(const OperationKey& key, const Message& message, uint32_t local_rank);
  Status await_leavers(uint32_t sender);
  Status check_receives_from(uint32_t rank) const;
  Status match(const OperationKey& key, LocalTicket ticket);
  Status go_on();
  Status begin_receiving(const OperationKey& key, Message& message);
  Status start(Message& message, Operation operation);
  void publish(const Message& message);
  void forget_if_over(Messages::iterator position);
  Status count_offered();
  void for_each_pending(const PendingVisitor& visit) const;

  const JobOnNode& job_;
  const std::shared_ptr<ResultMemory> memory_;
  MessageServices services_;
  MessageTransfers transfers_;
  MessageLog log_;
  const RankPlaces places_;
  const MessageErrors errors_;
  MessageSenders senders_;
  Messages messages_;
  std::unordered_map<LocalTicket, MessageEnd, LocalTicketHash> receives_;   // that wait
  std::unordered_map<LocalTicket, OperationKey, LocalTicketHash> tickets_;  // of messages
  std::vector<Mailbox> mailboxes_;                                          // by local rank
  std::vector<std::unordered_map<uint32_t, uint64_t>> sent_;  // by local rank: so many to a rank
  std::deque<OperationKey> unoffered_;                        // whose nodes are not reached yet
  std::deque<OperationKey> placed_;                           // whose memory is not there yet
  UserCharge charge_;
  size_t offered_ = 0;  // in all mailboxes
  size_t local_running_ = 0;
  bool is_overdue_ = false;
  bool awaits_leavers_ = false;
};

}  // namespace braid
