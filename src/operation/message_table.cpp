// SPDX-License-Identifier: Apache-2.0
#include "operation/message_table.h"

#include <algorithm>
#include <iterator>

#include <fmt/format.h>

#include "proto/ring.h"

namespace braid {
namespace {

std::vector<uint32_t> first_blocks_of(const Ring& ring) {
  std::vector<uint32_t> first = {0};
  for (const uint32_t ranks : ring.ranks_of_node) first.push_back(first.back() + ranks);
  return first;
}

}  // namespace

MessageTable::MessageTable(const JobOnNode& job, std::shared_ptr<ResultMemory> memory,
                           MessageServices services)
    : job_(job),
      memory_(std::move(memory)),
      services_(std::move(services)),
      transfers_(job_, memory_),
      first_blocks_(first_blocks_of(*job_.ring)),
      mailboxes_(job_.local_ranks.size()),
      leave_reasons_(job_.local_ranks.size()) {}

OperationKey MessageTable::key_of(const MessageName& name) const {
  return {job_.key, job_.hash.of(JobHash::Message, {name.from, name.to}), name.number};
}

uint32_t MessageTable::place_of(uint32_t rank) const {
  const auto next = std::ranges::upper_bound(first_blocks_, job_.ring->block_of_rank[rank]);
  return static_cast<uint32_t>(std::distance(first_blocks_.begin(), next) - 1);
}

std::optional<uint32_t> MessageTable::local_rank_of(uint32_t rank) const {
  const auto found = std::ranges::lower_bound(job_.local_ranks, rank);
  if (found == job_.local_ranks.end() || *found != rank) return std::nullopt;
  return static_cast<uint32_t>(std::distance(job_.local_ranks.begin(), found));
}

Status MessageTable::send(const MessageEnd& end) {
  MessageName name{job_.local_ranks[end.local_rank], end.peer, 0};
  name.number = next_numbers_[key_of(name).tensor]++;
  const OperationKey key = key_of(name);
  Message& message = messages_[key];
  message.name = name;
  message.tag = end.tag;
  message.bytes = end.bytes;
  message.sender = end;
  tickets_.emplace(LocalTicket{end.local_rank, end.ticket}, key);
  ++unfinished_;
  if (const auto receiver = local_rank_of(end.peer)) return arrive(key, message, *receiver);
  unoffered_.push_back(key);
  return unoffered_.size() == 1 ? offer_waiting() : Status::ok();
}

// In the order in which they were sent.
Status MessageTable::offer_waiting() {
  while (!unoffered_.empty()) {
    const Message& message = messages_.at(unoffered_.front());
    const uint32_t place = place_of(message.name.to);
    if (!services_.reach(place)) break;
    BRAID_RETURN_IF_ERROR(services_.offer(place, {message.name, message.tag, message.bytes}));
    unoffered_.pop_front();
  }
  return Status::ok();
}

Status MessageTable::receive(const MessageEnd& end) {
  const LocalTicket ticket{end.local_rank, end.ticket};
  receives_.emplace(ticket, end);
  ++unfinished_;
  if (const auto key = mailboxes_[end.local_rank].add_receive({end.ticket, end.peer, end.tag})) {
    --offered_;
    BRAID_RETURN_IF_ERROR(count_offered());
    return match(*key, ticket);
  }
  const auto sender = end.peer == proto::kAnyRank ? std::nullopt : local_rank_of(end.peer);
  if (!sender || !leave_reasons_[*sender]) return Status::ok();
  return why_left(*sender, describe(end, false));
}

Status MessageTable::on_offer(uint32_t place, const MessageOffer& offer) {
  const MessageName& name = offer.name;
  const bool is_possible = name.from < job_.ring->world_size && place_of(name.from) == place &&
                           offer.bytes <= kTensorBytesMax;
  const auto receiver = local_rank_of(name.to);
  if (!is_possible || !receiver) {
    return make_status(StatusCode::Protocol,
                       "job '{}': node '{}' offers a message of {} bytes from rank {} to rank {}, "
                       "which cannot be",
                       job_.name, services_.name_of_node(place), offer.bytes, name.from, name.to);
  }
  const OperationKey key = key_of(name);
  const auto [position, is_new] = messages_.try_emplace(key);
  if (!is_new) {
    return make_status(StatusCode::Protocol, "job '{}': node '{}' offers a message twice",
                       job_.name, services_.name_of_node(place));
  }
  Message& message = position->second;
  message.name = name;
  message.tag = offer.tag;
  message.bytes = offer.bytes;
  return arrive(key, message, *receiver);
}

// At the receiver's node.
Status MessageTable::arrive(const OperationKey& key, const Message& message, uint32_t local_rank) {
  const auto ticket = mailboxes_[local_rank].add_letter({key, message.name.from, message.tag});
  if (ticket) return match(key, {local_rank, *ticket});
  if (leave_reasons_[local_rank]) {
    return why_left(local_rank,
                    fmt::format("the receive of {} bytes, tag {}, that {} has sent it",
                                message.bytes, message.tag, describe_rank(message.name.from)));
  }
  ++offered_;
  return count_offered();
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
  if (message.bytes != receive.mapped().bytes) {
    return make_status(StatusCode::Mismatch,
                       "job '{}': {} sends {} bytes with tag {} to {}, which expects {} bytes",
                       job_.name, describe_rank(message.name.from), message.bytes, message.tag,
                       describe_rank(message.name.to), receive.mapped().bytes);
  }
  const auto place = memory_->allocate(message.bytes);
  if (!place) {
    return place.status().with_context(fmt::format("job '{}': no room for the result of the {}",
                                                   job_.name, describe(*message.receiver, false)));
  }
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
  message.state = State::Running;
  uint8_t* const result = memory_->data() + *message.result_offset;
  if (message.sender) {
    ++local_running_;
    return start(transfers_.within_node(key, message.bytes, message.sender->input, result));
  }
  const uint32_t place = place_of(message.name.from);
  // The engine must know the message before its bytes may come.
  BRAID_RETURN_IF_ERROR(start(transfers_.from(place, key, message.bytes, result)));
  return services_.accept(place, message.name);
}

Status MessageTable::start(Operation operation) {
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
  if (!is_ours || place_of(name.to) != place || place == job_.ring->self) {
    return make_status(StatusCode::Protocol,
                       "job '{}': node '{}' accepts a message that was not offered to it",
                       job_.name, services_.name_of_node(place));
  }
  Message& message = position->second;
  message.state = State::Running;
  return start(transfers_.to(place, key, message.bytes, message.sender->input));
}

Status MessageTable::on_memory(const Status& growth) {
  if (growth || placed_.empty()) return go_on();
  const Message& message = messages_.at(placed_.front());
  return growth.with_context(fmt::format("job '{}': no room for the result of the {}", job_.name,
                                         describe(*message.receiver, false)));
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
  publish(message);
  forget_if_over(position);
  if (!was_local) return;
  if (const Status started = go_on(); !started) services_.fail(started);
}

void MessageTable::publish(const Message& message) {
  const auto tell = [this](const std::optional<MessageEnd>& end, uint64_t offset, uint64_t bytes,
                           uint32_t source) {
    if (!end) return;
    --unfinished_;
    if (leave_reasons_[end->local_rank]) {
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
  leave_reasons_[local_rank] = reason;
  const uint32_t rank = job_.local_ranks[local_rank];
  std::erase_if(receives_, [this, local_rank](const auto& receive) {
    if (receive.first.first != local_rank) return false;
    --unfinished_;
    return true;
  });
  for (const auto& [ticket, end] : receives_) {
    if (end.peer == rank) return why_left(local_rank, describe(end, false));
  }
  for (auto next = messages_.begin(); next != messages_.end();) {
    const auto current = next++;
    const Message& message = current->second;
    if (message.name.to == rank && message.state == State::Offered) {
      return why_left(local_rank,
                      fmt::format("the receive of {} bytes, tag {}, that {} has sent it",
                                  message.bytes, message.tag, describe_rank(message.name.from)));
    }
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

Status MessageTable::why_left(uint32_t local_rank, const std::string& without) const {
  const std::string& reason = *leave_reasons_[local_rank];
  return make_status(StatusCode::JobFailed, "job '{}': {} left the job{} without {}", job_.name,
                     describe_rank(job_.local_ranks[local_rank]),
                     reason.empty() ? std::string() : fmt::format(" ({})", reason), without);
}

Status MessageTable::check_deadlines(uint64_t now_ns) {
  if (is_overdue_) return Status::ok();
  Status overdue;
  uint64_t earliest_ns = UINT64_MAX;
  const auto look = [&](const MessageEnd& end, bool is_send, const std::string& reason) {
    if (end.deadline_ns > now_ns || end.deadline_ns >= earliest_ns) return;
    earliest_ns = end.deadline_ns;
    overdue = why_overdue(end, is_send, reason);
  };
  for (const auto& [ticket, end] : receives_) look(end, false, "no such message was sent");
  for (const auto& [key, message] : messages_) {
    if (message.state == State::Ended) continue;
    const bool is_received = message.state != State::Offered;
    if (message.sender)
      look(*message.sender, true, is_received ? "it is on its way" : "it was not received");
    if (message.receiver) look(*message.receiver, false, "it is on its way");
  }
  is_overdue_ = !overdue;
  return overdue;
}

Status MessageTable::why_overdue(const MessageEnd& end, bool is_send,
                                 const std::string& reason) const {
  return make_status(StatusCode::DeadlineExceeded, "job '{}': the {} did not end within {} ms: {}",
                     job_.name, describe(end, is_send), end.timeout_ms, reason);
}

std::string MessageTable::describe(const MessageEnd& end, bool is_send) const {
  const std::string own = describe_rank(job_.local_ranks[end.local_rank]);
  const std::string other =
      end.peer == proto::kAnyRank ? std::string("any rank") : describe_rank(end.peer);
  return fmt::format("{} of {} bytes, tag {}, {} {} {} {}", is_send ? "send" : "receive", end.bytes,
                     end.tag, is_send ? "from" : "at", own, is_send ? "to" : "from", other);
}

std::string MessageTable::describe_rank(uint32_t rank) const {
  return fmt::format("rank {} on node '{}'", rank, services_.name_of_node(place_of(rank)));
}

}  // namespace braid
