// SPDX-License-Identifier: Apache-2.0
#include "operation/message_table.h"

#include <algorithm>

#include <fmt/format.h>

#include "proto/ring.h"

namespace braid {

MessageTable::MessageTable(const JobOnNode& job, std::shared_ptr<ResultMemory> memory,
                           MessageServices services)
    : job_(job),
      memory_(std::move(memory)),
      services_(std::move(services)),
      transfers_(job_, memory_),
      log_(services_.numbers, services_.timeline),
      places_(job_),
      errors_(job_, places_, services_.name_of_node),
      senders_(job_),
      mailboxes_(job_.local_ranks.size()),
      sent_(job_.local_ranks.size()) {}

OperationKey MessageTable::key_of(const MessageName& name) const {
  return {job_.key, job_.hash.of(JobHash::Message, {name.from, name.to}), name.number};
}

Status MessageTable::send(const MessageEnd& end) {
  MessageName name{job_.local_ranks[end.local_rank], end.peer, 0};
  name.number = sent_[end.local_rank][end.peer]++;
  const OperationKey key = key_of(name);
  Message& message = messages_[key];
  message.name = name;
  message.tag = end.tag;
  message.bytes = end.bytes;
  message.sender = end;
  tickets_.emplace(LocalTicket{end.local_rank, end.ticket}, key);
  log_.on_submit(true);
  if (const auto receiver = places_.local_rank_of(end.peer)) return arrive(key, message, *receiver);
  unoffered_.push_back(key);
  return unoffered_.size() == 1 ? offer_waiting() : Status::ok();
}

// In the order in which they were sent.
Status MessageTable::offer_waiting() {
  while (!unoffered_.empty()) {
    const Message& message = messages_.at(unoffered_.front());
    const uint32_t place = places_.place_of(message.name.to);
    if (!services_.reach(place)) break;
    BRAID_RETURN_IF_ERROR(services_.offer(place, message.offer()));
    unoffered_.pop_front();
  }
  return Status::ok();
}

Status MessageTable::receive(const MessageEnd& end) {
  const LocalTicket ticket{end.local_rank, end.ticket};
  receives_.emplace(ticket, end);
  log_.on_submit(false);
  if (const auto key = mailboxes_[end.local_rank].add_receive({end.ticket, end.peer, end.tag})) {
    --offered_;
    BRAID_RETURN_IF_ERROR(count_offered());
    return match(*key, ticket);
  }
  BRAID_RETURN_IF_ERROR(await_leavers(end.peer));
  return senders_.may_send(end.peer, end.local_rank) ? Status::ok()
                                                     : errors_.never_sent(end, senders_);
}

// A receive waits for what that rank sends.
Status MessageTable::await_leavers(uint32_t sender) {
  const bool is_here = sender != proto::kAnyRank && places_.local_rank_of(sender);
  if (awaits_leavers_ || is_here || job_.ring->nodes == 1) return Status::ok();
  awaits_leavers_ = true;
  return services_.await_leavers();
}

Status MessageTable::on_offer(uint32_t place, const MessageOffer& offer) {
  const MessageName& name = offer.name;
  const bool is_possible = name.from < job_.ring->world_size &&
                           places_.place_of(name.from) == place && offer.bytes <= kTensorBytesMax;
  const auto receiver = places_.local_rank_of(name.to);
  if (!is_possible || !receiver) return errors_.impossible(place, offer);
  const OperationKey key = key_of(name);
  const auto [position, is_new] = messages_.try_emplace(key);
  if (!is_new) return errors_.offered_twice(place);
  Message& message = position->second;
  message.name = name;
  message.tag = offer.tag;
  message.bytes = offer.bytes;
  return arrive(key, message, *receiver);
}

// At the receiver's node.
Status MessageTable::arrive(const OperationKey& key, const Message& message, uint32_t local_rank) {
  const MessageName& name = message.name;
  const bool is_last = senders_.on_message(name.from, local_rank);
  const auto ticket = mailboxes_[local_rank].add_letter({key, name.from, message.tag});
  if (ticket) {
    BRAID_RETURN_IF_ERROR(match(key, {local_rank, *ticket}));
  } else if (senders_.has_left(name.to)) {
    return errors_.not_received({name, message.tag, message.bytes}, senders_);
  } else {
    ++offered_;
    BRAID_RETURN_IF_ERROR(count_offered());
  }
  return is_last ? check_receives_from(name.from) : Status::ok();
}

// Some of its messages will not come.
Status MessageTable::check_receives_from(uint32_t rank) const {
  for (const auto& [ticket, end] : receives_) {
    if ((end.peer == rank || end.peer == proto::kAnyRank) &&
        !senders_.may_send(end.peer, end.local_rank))
      return errors_.never_sent(end, senders_);
  }
  return Status::ok();
}

Status MessageTable::count_offered() {
  if (offered_ > kOfferedMax) {
    return make_status(StatusCode::ResourceExhausted,
                       "job '{}': {} messages wait for receives of rank {}, the limit: a rank may "
                       "not send so many before they are received",
                       job_.name, kOfferedMax, fmt::join(job_.local_ranks, " and "));
  }
  Status room = charge_.set_in_steps(offered_ * kCostBytes, kStepBytes);
  if (room) return room;
  return room.with_context(
      fmt::format("job '{}': {} messages wait for their receives", job_.name, offered_));
}

Status MessageTable::match(const OperationKey& key, LocalTicket ticket) {
  Message& message = messages_.at(key);
  const auto receive = receives_.extract(ticket);
  message.receiver = receive.mapped();
  tickets_.emplace(ticket, key);
  if (message.bytes != receive.mapped().bytes)
    return errors_.unlike(message.offer(), receive.mapped().bytes);
  const auto place = memory_->allocate(message.bytes);
  if (!place) return errors_.no_room(place.status(), *message.receiver);
  message.result_offset = *place;
  message.state = State::Matched;
  placed_.push_back(key);
  return placed_.size() == 1 ? go_on() : Status::ok();
}

Status MessageTable::go_on() {
  while (!placed_.empty()) {
    const OperationKey key = placed_.front();
    Message& message = messages_.at(key);
    const bool is_local = message.sender.has_value();
    if (!memory_->has_memory(*message.result_offset, message.bytes) ||
        (is_local && local_running_ >= kLocalRunningMax))
      break;
    placed_.pop_front();
    BRAID_RETURN_IF_ERROR(begin_receiving(key, message));
  }
  return Status::ok();
}

Status MessageTable::begin_receiving(const OperationKey& key, Message& message) {
  uint8_t* const result = memory_->data() + *message.result_offset;
  if (message.sender) {
    ++local_running_;
    return start(message,
                 transfers_.within_node(key, message.bytes, message.sender->input, result));
  }
  const uint32_t place = places_.place_of(message.name.from);
  // The engine must know the message before its bytes may come.
  BRAID_RETURN_IF_ERROR(start(message, transfers_.from(place, key, message.bytes, result)));
  return services_.accept(place, message.name);
}

Status MessageTable::start(Message& message, Operation operation) {
  message.state = State::Running;
  message.went_ns = services_.now_ns();
  const OperationKey key = operation.key;
  if (services_.engines.start(std::move(operation)) && services_.engines.go(key))
    return Status::ok();
  return make_status(StatusCode::ResourceExhausted,
                     "job '{}': too many operations are in flight on this node", job_.name);
}

Status MessageTable::on_accept(uint32_t place, const MessageName& name) {
  const OperationKey key = key_of(name);
  const auto position = messages_.find(key);
  const bool is_ours = position != messages_.end() && position->second.sender &&
                       position->second.state == State::Offered;
  if (!is_ours || places_.place_of(name.to) != place || place == job_.ring->self)
    return errors_.not_offered(place);
  Message& message = position->second;
  return start(message, transfers_.to(place, key, message.bytes, message.sender->input));
}

Status MessageTable::on_memory(const Status& growth) {
  if (growth || placed_.empty()) return go_on();
  return errors_.no_room(growth, *messages_.at(placed_.front()).receiver);
}

Status MessageTable::on_reached() { return offer_waiting(); }

void MessageTable::on_done(const OperationKey& key) {
  const auto position = messages_.find(key);
  if (position == messages_.end()) return services_.operations.on_done(key);
  Message& message = position->second;
  if (message.state != State::Running) return;
  message.state = State::Ended;
  const bool was_local = message.sender && message.receiver;
  if (was_local) --local_running_;
  log_.record(key, message, services_.now_ns());
  publish(message);
  forget_if_over(position);
  if (!was_local) return;
  if (const Status started = go_on(); !started) services_.fail(started);
}

void MessageTable::publish(const Message& message) {
  const auto tell = [&](const std::optional<MessageEnd>& end, uint64_t offset, uint64_t bytes,
                        uint32_t source) {
    if (!end) return;
    log_.on_end(&end == &message.sender, message.bytes);
    if (senders_.has_left(job_.local_ranks[end->local_rank])) {
      tickets_.erase({end->local_rank, end->ticket});
    } else if (MessageSink* const sink = services_.sinks[end->local_rank]; sink != nullptr) {
      sink->publish_message(end->ticket, offset, bytes, source);
    }
  };
  tell(message.sender, 0, 0, 0);
  tell(message.receiver, message.result_offset.value_or(0), message.bytes, message.name.from);
}

void MessageTable::on_retired(const OperationKey& key) {
  const auto position = messages_.find(key);
  if (position == messages_.end()) return services_.operations.on_retired(key);
  position->second.is_retired = true;
  forget_if_over(position);
}

Status MessageTable::release(uint32_t local_rank, uint64_t ticket) {
  const LocalTicket local{local_rank, ticket};
  const auto held = tickets_.find(local);
  const auto position = held == tickets_.end() ? messages_.end() : messages_.find(held->second);
  if (position == messages_.end() || position->second.state != State::Ended) {
    return make_status(StatusCode::Protocol,
                       "job '{}': rank {} gave back ticket {}, a message, before it was over",
                       job_.name, job_.local_ranks[local_rank], ticket);
  }
  tickets_.erase(held);
  forget_if_over(position);
  return Status::ok();
}

void MessageTable::forget_if_over(Messages::iterator position) {
  const Message& message = position->second;
  if (message.state != State::Ended || !message.is_retired) return;
  for (const auto* const end : {&message.sender, &message.receiver}) {
    if (*end && tickets_.contains({(*end)->local_rank, (*end)->ticket})) return;
  }
  if (message.result_offset) memory_->free(*message.result_offset);
  messages_.erase(position);
}

Status MessageTable::on_rank_left(uint32_t local_rank, const std::string& reason) {
  const uint32_t rank = job_.local_ranks[local_rank];
  senders_.on_left(rank, reason, {});
  std::erase_if(receives_, [this, local_rank](const auto& receive) {
    if (receive.first.first != local_rank) return false;
    log_.on_given_up();
    return true;
  });
  BRAID_RETURN_IF_ERROR(check_receives_from(rank));
  for (auto next = messages_.begin(); next != messages_.end();) {
    const auto current = next++;
    const Message& message = current->second;
    if (message.name.to == rank && message.state == State::Offered)
      return errors_.not_received(message.offer(), senders_);
    // A rank that has left gives back all results.
    for (const auto* const end : {&message.sender, &message.receiver}) {
      if (message.state == State::Ended && *end && (*end)->local_rank == local_rank)
        tickets_.erase({local_rank, (*end)->ticket});
    }
    forget_if_over(current);
  }
  mailboxes_[local_rank] = Mailbox();
  return Status::ok();
}

Status MessageTable::on_other_left(const LeftRank& left) {
  if (left.rank >= job_.ring->world_size || places_.local_rank_of(left.rank) || !left.sent ||
      !senders_.on_left(left.rank, left.reason, *left.sent))
    return Status::ok();
  return check_receives_from(left.rank);
}

SentMessages MessageTable::sent_by(uint32_t local_rank) const {
  SentMessages sent;
  for (const auto& [rank, messages] : sent_[local_rank]) {
    if (!places_.local_rank_of(rank)) sent.push_back({rank, messages});
  }
  return sent;
}

Status MessageTable::check_deadlines(uint64_t now_ns) {
  if (is_overdue_) return Status::ok();
  Status overdue;
  uint64_t earliest_ns = UINT64_MAX;
  for_each_pending([&](const MessageEnd& end, bool is_send, bool has_other_end) {
    if (end.deadline_ns > now_ns || end.deadline_ns >= earliest_ns) return;
    earliest_ns = end.deadline_ns;
    overdue = errors_.overdue(end, is_send,
                              has_other_end ? "it is on its way"
                              : is_send     ? "it was not received"
                                            : "no such message was sent");
  });
  is_overdue_ = !overdue;
  return overdue;
}

std::vector<PendingMessage> MessageTable::pending() const {
  std::vector<PendingMessage> all;
  for_each_pending([&](const MessageEnd& end, bool is_send, bool has_other_end) {
    all.push_back({is_send, job_.local_ranks[end.local_rank], end.peer, end.tag, end.bytes,
                   end.submitted_ns, has_other_end});
  });
  return all;
}

std::vector<TimelineEvent> MessageTable::unfinished_spans() {
  std::vector<TimelineEvent> spans;
  for (const auto& [ticket, end] : receives_) {
    const MessageName name{end.peer, job_.local_ranks[end.local_rank],
                           senders_.come_from(end.peer, end.local_rank)};
    spans.push_back(log_.span_of(key_of(name), name, end.submitted_ns, 0));
  }
  for (const auto& [key, message] : messages_) {
    if (message.state != State::Ended && (message.sender || message.receiver))
      spans.push_back(log_.span_of(key, message.name, message.submitted_ns(), message.went_ns));
  }
  return spans;
}

void MessageTable::for_each_pending(const PendingVisitor& visit) const {
  for (const auto& [ticket, end] : receives_) visit(end, false, false);
  for (const auto& [key, message] : messages_) {
    if (message.state == State::Ended) continue;
    const bool is_received = message.state != State::Offered;
    if (message.sender) visit(*message.sender, true, is_received);
    if (message.receiver) visit(*message.receiver, false, is_received);
  }
}

}  // namespace braid
