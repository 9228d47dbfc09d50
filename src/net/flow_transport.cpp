// SPDX-License-Identifier: Apache-2.0
#include "net/flow_transport.h"

#include <algorithm>

#include <fmt/ranges.h>

#include "base/log.h"
#include "net/flow_messages.h"

namespace braid {

FlowTransport::FlowTransport(Loop& control_loop, const std::vector<IoLoop>& io_loops,
                             TransportOptions options, std::shared_ptr<FlowNetwork> network,
                             ControlPlane& control_plane)
    : control_loop_(control_loop),
      options_(std::move(options)),
      network_(std::move(network)),
      control_plane_(control_plane),
      links_(control_loop, options_, control_plane, io_transports_) {
  // Reports are few: bounded by the flows there are, and by the commands that ask for them.
  reports_ = std::make_unique<Door<IoReport>>(control_loop, SIZE_MAX, [this](IoReport& report) {
    std::visit([this](auto& specific) { handle(specific); }, report);
  });
  for (size_t i = 0; i < io_loops.size(); ++i) {
    io_transports_.push_back(std::make_unique<IoTransport>(static_cast<uint16_t>(i), io_loops[i],
                                                           options_, *network_, *reports_));
  }
  rails_up_ = std::make_unique<std::atomic<bool>[]>(options_.rails.size());
  for (size_t rail = 0; rail < options_.rails.size(); ++rail) rails_up_[rail] = true;
  watch_rails();
}

void FlowTransport::watch_rails() {
  auto watch = RailWatch::create(control_loop_, options_.rails, [this](size_t rail, bool is_up) {
    rails_up_[rail].store(is_up, std::memory_order_relaxed);
    BRAID_LOG_WARN(LogFields{.rail = options_.rails[rail]}, "rail {} is {}", options_.rails[rail],
                   is_up ? "up again" : "down");
    if (is_closing_) return;
    for (auto& io : io_transports_) io->commands().send_unbounded(RailChanged{rail, is_up});
  });
  if (!watch) {
    BRAID_LOG_WARN("rails that go down are noticed late: {}", watch.status().message());
    return;
  }
  rail_watch_ = std::move(*watch);
}

FlowTransport::~FlowTransport() {
  BRAID_ASSERT(is_closing_ && loops_to_close_ == 0, "the transport must be closed before it goes");
}

void FlowTransport::open_link(NodeId peer, OpenCallback callback) {
  BRAID_ASSERT_IN_LOOP(control_loop_);
  const Peer* known = control_plane_.find(peer);
  if (known == nullptr || is_closing_) {
    Status status = is_closing_ ? Status(StatusCode::Cancelled, "this node is going down")
                                : make_status(StatusCode::Unavailable,
                                              "node {:016x} is not connected to this one", peer);
    control_loop_.defer([callback = std::move(callback), status] { callback(status); });
    return;
  }
  links_.open(*known, std::move(callback));
}

void FlowTransport::add_flows(NodeId peer, uint32_t flows) {
  BRAID_ASSERT_IN_LOOP(control_loop_);
  links_.add_flows(peer, flows);
}

bool FlowTransport::close_idle_links(const std::unordered_set<NodeId>& used, uint64_t idle_ms) {
  BRAID_ASSERT_IN_LOOP(control_loop_);
  return links_.close_idle(used, idle_ms);
}

void FlowTransport::on_peer_lost(NodeId peer) {
  BRAID_ASSERT_IN_LOOP(control_loop_);
  if (is_closing_) return;
  const Status reason(StatusCode::Unavailable, "the connection to the node was lost");
  links_.drop(peer, reason);
  for (auto& io : io_transports_) io->commands().send_unbounded(ClosePeer{peer, reason});
}

void FlowTransport::handle(FlowsOffered& report) {
  if (is_closing_ || links_.find(report.peer, report.nonce) == nullptr) return;
  flatbuffers::FlatBufferBuilder message;
  write_flow_open(message, report.nonce, static_cast<uint16_t>(io_transports_.size()),
                  static_cast<uint16_t>(options_.flows_per_link), options_.chunk_bytes,
                  options_.transport_name(), report.offers);
  const Status sent = control_plane_.send(report.peer, message);
  if (sent) return;
  for (const auto& offer : report.offers) {
    io_transports_[offer.io_loop]->commands().send_unbounded(
        RefuseFlow{report.peer, {offer.io_loop, offer.flow, offer.generation, sent.message()}});
  }
}

void FlowTransport::handle(FlowAccepted& report) {
  if (is_closing_) return;
  flatbuffers::FlatBufferBuilder message;
  write_flow_accept(message, report.offer);
  if (Status sent = control_plane_.send(report.peer, message); !sent) {
    BRAID_LOG_DEBUG("cannot answer an offer of a flow: {}", sent.message());
  }
}

void FlowTransport::handle(FlowRefused& report) {
  if (is_closing_) return;
  flatbuffers::FlatBufferBuilder message;
  write_flow_refuse(message, report.refusal);
  if (Status sent = control_plane_.send(report.peer, message); !sent) {
    BRAID_LOG_DEBUG("cannot refuse an offer of a flow: {}", sent.message());
  }
}

void FlowTransport::handle(LinkTried& report) {
  const Peer* opened = links_.on_tried(report);
  if (opened == nullptr) return;
  BRAID_LOG_INFO(LogFields{.peer = opened->name}, "link to node '{}' is open ({})", opened->name,
                 description());
}

void FlowTransport::handle(LinkLost& report) {
  const Peer* known = links_.find(report.peer, report.nonce);
  if (known == nullptr) return;
  const Peer peer = *known;
  BRAID_LOG_WARN(LogFields{.peer = peer.name}, "link lost: {}", report.reason.message());
  links_.drop(report.peer, report.reason);
  if (link_lost_) link_lost_(peer, report.reason);
}

void FlowTransport::handle(FlowsListed& report) {
  const auto found = queries_.find(report.query);
  if (found == queries_.end()) return;
  Query& query = found->second;
  query.flows.insert(query.flows.end(), std::make_move_iterator(report.flows.begin()),
                     std::make_move_iterator(report.flows.end()));
  if (--query.loops_missing > 0) return;
  const Query done = std::move(query);
  queries_.erase(found);
  done.callback(done.flows);
}

void FlowTransport::handle(AllClosed&) {
  if (--loops_to_close_ > 0) return;
  // Not from within the door's own handler.
  control_loop_.defer([this, closed = std::move(closed_)] {
    reports_.reset();
    closed();
  });
}

bool FlowTransport::on_control_message(const Peer& from, const proto::ControlMessage& message) {
  BRAID_ASSERT_IN_LOOP(control_loop_);
  switch (message.body_type()) {
    case proto::ControlBody::FlowOpen:
      on_flow_open(from, *message.body_as_FlowOpen());
      return true;
    case proto::ControlBody::FlowAccept:
      on_flow_accept(from, *message.body_as_FlowAccept());
      return true;
    case proto::ControlBody::FlowRefuse:
      on_flow_refuse(from, *message.body_as_FlowRefuse());
      return true;
    default:  // the other messages are not the transport's
      return false;
  }
}

void FlowTransport::on_flow_open(const Peer& from, const proto::FlowOpen& message) {
  if (is_closing_) return;
  auto offers = read_flow_open(message);
  if (!offers) {
    BRAID_LOG_WARN(LogFields{.peer = from.name}, "node '{}' asks for impossible flows: {}",
                   from.name, offers.status().message());
    return;
  }
  const std::string unfit = find_difference(message);
  const bool fits = unfit.empty();
  const std::string reason = fits ? "too many requests at once" : unfit;
  const LinkKey key =
      control_plane_.link_key(from.id, control_plane_.self().id, message.link_nonce());
  for (auto& offer : *offers) {
    // Nodes may have different numbers of loops: every loop of the sender finds one here.
    auto& io = *io_transports_[offer.io_loop % io_transports_.size()];
    FlowRefused refusal{from.id, {offer.io_loop, offer.flow, offer.generation, reason}};
    const FlowKeys keys(key, offer.io_loop, offer.flow, offer.generation);
    if (!fits || !io.commands().send(AcceptFlow{from, keys, std::move(offer)})) {
      handle(refusal);
    }
  }
}

// What keeps this node from taking such flows; empty: nothing.
std::string FlowTransport::find_difference(const proto::FlowOpen& message) const {
  const std::string theirs = message.transport()->str();
  if (theirs != options_.transport_name()) {
    return fmt::format(
        "it opens flows by '{}', and this node uses '{}'; set the same transport.tcp and "
        "transport.transports on all nodes",
        theirs, options_.transport_name());
  }
  if (message.chunk_bytes() != 0 && message.chunk_bytes() <= options_.chunk_bytes) return {};
  return fmt::format(
      "it would send chunks of {} bytes, but transport.chunk_bytes is {} here; set the same on all "
      "nodes",
      message.chunk_bytes(), options_.chunk_bytes);
}

void FlowTransport::on_flow_accept(const Peer& from, const proto::FlowAccept& message) {
  if (is_closing_) return;
  auto offers = read_flow_accept(message);
  if (!offers) {
    BRAID_LOG_WARN(LogFields{.peer = from.name}, "node '{}' accepts impossible flows: {}",
                   from.name, offers.status().message());
    return;
  }
  for (auto& offer : *offers) {
    if (offer.io_loop >= io_transports_.size()) continue;
    auto& io = *io_transports_[offer.io_loop];
    io.commands().send(ConnectFlow{from.id, std::move(offer)});
  }
}

void FlowTransport::on_flow_refuse(const Peer& from, const proto::FlowRefuse& message) {
  FlowRefusal refusal = read_flow_refuse(message);
  if (is_closing_ || refusal.io_loop >= io_transports_.size()) return;
  auto& io = *io_transports_[refusal.io_loop];
  io.commands().send(RefuseFlow{from.id, std::move(refusal)});
}

void FlowTransport::close(std::function<void()> closed) {
  BRAID_ASSERT_IN_LOOP(control_loop_);
  BRAID_ASSERT(!is_closing_, "close is called once");
  const Status reason(StatusCode::Cancelled, "this node is going down");
  links_.drop_all(reason);
  is_closing_ = true;
  closed_ = std::move(closed);
  rail_watch_.reset();
  loops_to_close_ = io_transports_.size();
  for (auto& io : io_transports_) io->commands().send_unbounded(CloseAll{});
}

std::string FlowTransport::description() const {
  return fmt::format("{} on {}, {} flows per link and I/O loop{}", network_->description(),
                     fmt::join(options_.rails, ","), options_.flows_per_link,
                     options_.encrypts ? ", encrypted" : "");
}

std::vector<RailStatus> FlowTransport::rails() const {
  std::vector<RailStatus> rails;
  for (size_t rail = 0; rail < options_.rails.size(); ++rail)
    rails.push_back({options_.rails[rail], rails_up_[rail].load(std::memory_order_relaxed)});
  return rails;
}

TransportCounters FlowTransport::counters() const {
  TransportCounters sum;
  for (const auto& io : io_transports_) {
    const IoCounters& part = io->counters();
    sum.bytes_sent += part.bytes_sent.load(std::memory_order_relaxed);
    sum.bytes_received += part.bytes_received.load(std::memory_order_relaxed);
    sum.chunks_sent += part.chunks_sent.load(std::memory_order_relaxed);
    sum.chunks_received += part.chunks_received.load(std::memory_order_relaxed);
    sum.chunks_resent += part.chunks_resent.load(std::memory_order_relaxed);
    sum.chunks_sent_twice += part.chunks_sent_twice.load(std::memory_order_relaxed);
    sum.strangers += part.strangers.load(std::memory_order_relaxed);
    sum.chunks_rejected += part.chunks_rejected.load(std::memory_order_relaxed);
    sum.flow_failures += part.flow_failures.load(std::memory_order_relaxed);
    sum.flows_silent += part.flows_silent.load(std::memory_order_relaxed);
    sum.flows_replaced += part.flows_replaced.load(std::memory_order_relaxed);
    sum.flows_open += part.flows_open.load(std::memory_order_relaxed);
    sum.flows_opening += part.flows_opening.load(std::memory_order_relaxed);
    sum.flows_failed += part.flows_failed.load(std::memory_order_relaxed);
  }
  return sum;
}

std::vector<LinkStatus> FlowTransport::link_statuses() const {
  std::vector<std::shared_ptr<const LinkNumbers>> loops;
  for (const auto& io : io_transports_) {
    const auto own = io->link_board().all();
    loops.insert(loops.end(), own.begin(), own.end());
  }
  return join_links(loops, options_.rails);
}

void FlowTransport::query_flows(std::function<void(std::vector<FlowStatus>)> callback) {
  BRAID_ASSERT_IN_LOOP(control_loop_);
  if (is_closing_) {
    control_loop_.defer([callback = std::move(callback)] { callback({}); });
    return;
  }
  const uint64_t id = next_query_++;
  queries_[id] = {std::move(callback), io_transports_.size(), {}};
  for (auto& io : io_transports_) io->commands().send_unbounded(ListFlows{id});
}

}  // namespace braid
