// SPDX-License-Identifier: Apache-2.0
#include "net/io_transport.h"

#include <algorithm>

#include "base/log.h"

namespace braid {
namespace {

constexpr size_t kCommandsMax = 4096;       // waiting at the door
constexpr size_t kIncomingFlowsMax = 1024;  // on one I/O loop, from all peers

}  // namespace

IoTransport::IoTransport(uint16_t io_loop, IoLoop where, const TransportOptions& options,
                         FlowNetwork& network, Door<IoReport>& reports)
    : loop_(*where.loop),
      reports_(reports),
      link_board_(options.rails.size()),
      limits_({options.flows_per_link, options.window_bytes}) {
  BRAID_ASSERT_IN_LOOP(loop_);
  FlowDriver::Owner& owner = *this;
  driver_ = std::make_unique<FlowDriver>(loop_, owner);
  paced_ = std::make_unique<PacedTasks>(loop_);
  channels_ = network.channels(loop_, io_loop, *paced_, counters_.strangers);
  io_.emplace(IoContext{loop_, *driver_, *where.sink, options, counters_, link_board_, limits_,
                        *paced_, *channels_, where.timeline, io_loop, 0,
                        std::vector<bool>(options.rails.size(), true)});
  commands_ = std::make_unique<Door<IoCommand>>(loop_, kCommandsMax, [this](IoCommand& command) {
    std::visit([this](auto& specific) { handle(specific); }, command);
  });
  channels_->set_on_rail_here([this](size_t rail) {
    BRAID_LOG_INFO(LogFields{.rail = io_->options.rails[rail]}, "rail {} is here",
                   io_->options.rails[rail]);
    on_rails_changed();
  });
}

IoTransport::~IoTransport() {
  BRAID_ASSERT(is_closed_, "the transport must be closed before it goes");
}

Link* IoTransport::find(NodeId peer) {
  FlowLink* link = link_to(peer);
  return link != nullptr && link->is_established() ? link : nullptr;
}

void IoTransport::limit(uint64_t job_key, const LinkLimits& limits) {
  limits_.set(job_key, limits);
  for (auto& [peer, link] : links_) on_link_ready(*link);  // more may fit now
}

FlowLink* IoTransport::link_to(NodeId peer) {
  const auto found = links_.find(peer);
  return found == links_.end() ? nullptr : found->second.get();
}

void IoTransport::handle(OpenLink& command) {
  const NodeId peer = command.peer.id;
  close_link(peer, {StatusCode::Cancelled, "opened anew"});
  FlowLink::Owner& owner = *this;
  auto link =
      std::make_unique<FlowLink>(*io_, owner, std::move(command.peer), command.nonce, command.key);
  FlowLink& started = *link;
  links_[peer] = std::move(link);
  started.start();
}

void IoTransport::handle(AddFlows& command) {
  FlowLink* link = link_to(command.peer);
  if (link != nullptr && link->nonce() == command.nonce) link->add_flows(command.flows);
}

void IoTransport::handle(ProveFlows& command) {
  FlowLink* link = link_to(command.peer);
  if (link != nullptr && link->nonce() == command.nonce) link->prove();
}

void IoTransport::handle(CloseLink& command) {
  FlowLink* link = link_to(command.peer);
  if (link != nullptr && link->nonce() == command.nonce) close_link(command.peer, command.reason);
}

void IoTransport::handle(ConnectFlow& command) {
  if (FlowLink* link = link_to(command.peer)) link->on_accepted(std::move(command.accepted));
}

void IoTransport::handle(RefuseFlow& command) {
  if (FlowLink* link = link_to(command.peer)) link->on_refused(command.refusal);
}

void IoTransport::handle(AcceptFlow& command) {
  if (to_accept_.size() >= kIncomingFlowsMax) return refuse(command, "too many requests at once");
  const uint64_t request = ++last_request_;
  ChannelRequest channel{.rail = io_->rail_of(command.offer.flow),
                         .role = ChannelRole::TakesChunks,
                         .proof_key = command.keys.proof_key,
                         .cipher_key = io_->cipher_key_of(command.keys),
                         .token = command.keys.chunk_token,
                         .remote_address = command.offer.address};
  to_accept_.emplace(request, std::move(command));
  channels_->make(this, std::move(channel),
                  [this, request](FlowChannels::Made made) { accept(request, std::move(made)); });
}

void IoTransport::refuse(const AcceptFlow& command, const std::string& reason) {
  const FlowOffer& offer = command.offer;
  BRAID_LOG_INFO(LogFields{.peer = command.peer.name, .flow = offer.flow},
                 "refused flow {} from node '{}': {}", offer.flow, command.peer.name, reason);
  reports_.send_unbounded(
      FlowRefused{command.peer.id, {offer.io_loop, offer.flow, offer.generation, reason}});
}

void IoTransport::accept(uint64_t request, FlowChannels::Made made) {
  const auto found = to_accept_.find(request);
  if (found == to_accept_.end()) return;  // its peer was lost meanwhile
  const AcceptFlow command = std::move(found->second);
  to_accept_.erase(found);
  Status opened = prepare_incoming(command);
  if (opened && !made) opened = made.status();
  if (!opened) return refuse(command, opened.message());
  open_incoming(command, std::move(*made));
}

// Closes the flow that the new one is to replace.
Status IoTransport::prepare_incoming(const AcceptFlow& command) {
  const FlowOffer& offer = command.offer;
  const auto same = std::find_if(incoming_.begin(), incoming_.end(), [&](const Incoming& known) {
    return known.peer.id == command.peer.id && known.io_loop == offer.io_loop &&
           known.index == offer.flow;
  });
  if (same != incoming_.end()) close_incoming(static_cast<size_t>(same - incoming_.begin()));
  if (incoming_.size() >= kIncomingFlowsMax) {
    return make_status(StatusCode::ResourceExhausted,
                       "this I/O loop has {} incoming flows, which is the most", kIncomingFlowsMax);
  }
  if (!io_->is_usable(offer.flow)) {
    return make_status(StatusCode::Unavailable, "rail {} is down there",
                       io_->rail_name_of(offer.flow));
  }
  return Status::ok();
}

void IoTransport::open_incoming(const AcceptFlow& command, std::unique_ptr<FlowChannel> channel) {
  const FlowOffer& offer = command.offer;
  const std::string& rail = io_->rail_name_of(offer.flow);
  FlowOffer answer{offer.io_loop, offer.flow, offer.generation, rail, channel->address()};
  incoming_.push_back(
      {IncomingFlow::create(*io_, *this, std::move(channel), command.peer.id,
                            command.keys.chunk_token,
                            fmt::format("flow {} from node '{}' ({}) on rail {}", offer.flow,
                                        command.peer.name, command.peer.address, rail),
                            io_->board.rail_of(command.peer.name, offer.flow)),
       offer.io_loop, offer.flow, command.peer});
  reports_.send_unbounded(FlowAccepted{command.peer.id, std::move(answer)});
}

void IoTransport::handle(ClosePeer& command) {
  close_link(command.peer, command.reason);
  std::erase_if(to_accept_,
                [&](const auto& waiting) { return waiting.second.peer.id == command.peer; });
  for (size_t at = incoming_.size(); at-- > 0;) {
    if (incoming_[at].peer.id == command.peer) close_incoming(at);
  }
}

void IoTransport::handle(RailChanged& command) {
  io_->rails_up[command.rail] = command.is_up;
  on_rails_changed();
}

void IoTransport::on_rails_changed() {
  for (auto& [peer, link] : links_) link->on_rails_changed();
}

void IoTransport::handle(ListFlows& command) {
  FlowsListed report{command.query, {}};
  for (const auto& [peer, link] : links_) link->list_flows(report.flows);
  for (const auto& incoming : incoming_) {
    FlowStatus status;
    status.peer = incoming.peer.name;
    status.io_loop = io_->io_loop;
    status.flow = incoming.index;
    status.rail = io_->rail_name_of(incoming.index);
    status.state = to_string(incoming.flow->state());
    status.bytes_received = incoming.flow->bytes_received();
    report.flows.push_back(std::move(status));
  }
  reports_.send_unbounded(std::move(report));
}

void IoTransport::handle(CloseAll&) {
  channels_->drop(this);
  to_accept_.clear();
  while (!links_.empty()) {
    close_link(links_.begin()->first, {StatusCode::Cancelled, "this node closes its transport"});
  }
  while (!incoming_.empty()) close_incoming(incoming_.size() - 1);
  // After the flows that are freed later, and their channels; not from within a task of paced_.
  paced_->add(this,
              [this] { channels_->close([this] { loop_.defer([this] { finish_closing(); }); }); });
}

void IoTransport::finish_closing() {
  commands_.reset();
  channels_.reset();
  paced_.reset();
  io_.reset();
  driver_.reset();
  is_closed_ = true;
  reports_.send_unbounded(AllClosed{});
}

void IoTransport::close_link(NodeId peer, const Status& reason) {
  const auto found = links_.find(peer);
  if (found == links_.end()) return;
  // Out of the map first: the chunks' sources must not find it when they are told. Freed later: we
  // may be in a call of the link's, and its caller may hold it until the loop's callback returns.
  std::shared_ptr<FlowLink> link = std::move(found->second);
  links_.erase(found);
  note_lost();
  link->close(reason);
  std::erase(ready_, link.get());
  std::replace(pumping_.begin(), pumping_.end(), link.get(), static_cast<FlowLink*>(nullptr));
  loop_.defer([link] {});
}

void IoTransport::close_incoming(size_t at) {
  Incoming gone = std::move(incoming_[at]);
  incoming_.erase(incoming_.begin() + static_cast<ptrdiff_t>(at));
  if (gone.flow->was_open()) counters_.flows_open.fetch_sub(1, std::memory_order_relaxed);
  io_->free_later(std::move(gone.flow));
}

void IoTransport::before_round() {
  pumping_.swap(ready_);
  for (size_t i = 0; i < pumping_.size(); ++i) {
    if (pumping_[i] == nullptr) continue;
    pumping_[i]->is_ready = false;
    pumping_[i]->pump();
  }
  pumping_.clear();
}

bool IoTransport::expects_progress() const {
  return std::any_of(links_.begin(), links_.end(),
                     [](const auto& entry) { return entry.second->has_chunks(); });
}

void IoTransport::on_link_ready(FlowLink& link) {
  if (link.is_ready) return;
  link.is_ready = true;
  ready_.push_back(&link);
  driver_->wake();
}

void IoTransport::on_flows_offered(FlowLink& link, std::vector<FlowOffer> offers) {
  reports_.send_unbounded(FlowsOffered{link.peer().id, link.nonce(), std::move(offers)});
}

void IoTransport::on_link_tried(FlowLink& link, size_t flows_open, const Status& error) {
  reports_.send_unbounded(LinkTried{link.peer().id, link.nonce(), io_->io_loop, flows_open, error});
}

void IoTransport::on_link_lost(FlowLink& link, const Status& reason) {
  reports_.send_unbounded(LinkLost{link.peer().id, link.nonce(), reason});
  close_link(link.peer().id, reason);
}

void IoTransport::on_flow_failed(IncomingFlow& flow) {
  if (flow.is_idle()) {
    BRAID_LOG_DEBUG("{}; nothing was sent on it", flow.error().message());
  } else {
    BRAID_LOG_INFO("{}; the sender opens it again", flow.error().message());
    counters_.flow_failures.fetch_add(1, std::memory_order_relaxed);
  }
  const auto at = std::find_if(incoming_.begin(), incoming_.end(),
                               [&](const Incoming& known) { return known.flow.get() == &flow; });
  BRAID_ASSERT(at != incoming_.end(), "a flow that fails is a known one");
  close_incoming(static_cast<size_t>(at - incoming_.begin()));
}

}  // namespace braid
