// SPDX-License-Identifier: Apache-2.0
#include "net/node_links.h"

#include <algorithm>
#include <utility>

#include "base/log.h"
#include "base/random.h"
#include "net/flow_messages.h"

namespace braid {

NodeLinks::NodeLinks(Loop& control_loop, const TransportOptions& options,
                     const ControlPlane& control_plane,
                     const std::vector<std::unique_ptr<IoTransport>>& io_transports)
    : control_loop_(control_loop),
      options_(options),
      control_plane_(control_plane),
      io_transports_(io_transports) {}

const Peer* NodeLinks::find(NodeId peer, uint64_t nonce) const {
  const auto found = links_.find(peer);
  return found != links_.end() && found->second.nonce == nonce ? &found->second.peer : nullptr;
}

void NodeLinks::open(const Peer& peer, Transport::OpenCallback callback) {
  const auto [place, is_new] = links_.try_emplace(peer.id);
  OpeningOrOpen& link = place->second;
  link.last_used_ms = uv_now(control_loop_.uv());
  if (link.is_open) {
    // It may have stood unused: what has become of its flows should be known when the job begins.
    for (auto& io : io_transports_) io->commands().send(ProveFlows{peer.id, link.nonce});
    control_loop_.defer([callback = std::move(callback)] { callback(Status::ok()); });
    return;
  }
  link.waiting.push_back(std::move(callback));
  if (!is_new) return;
  link.peer = peer;
  link.nonce = random_u64();
  link.flows = options_.flows_per_link;
  link.loop_is_up.assign(io_transports_.size(), false);
  link.deadline = std::make_unique<Timer>(control_loop_);
  link.deadline->start_once(options_.open_timeout_ms, [this, id = peer.id] {
    drop(id, make_status(StatusCode::DeadlineExceeded,
                         "cannot open a link to node '{}' ({}): not done within {} ms",
                         links_.at(id).peer.name, links_.at(id).peer.address,
                         options_.open_timeout_ms));
  });
  tell_loops(OpenLink{link.peer, link.nonce,
                      control_plane_.link_key(control_plane_.self().id, peer.id, link.nonce)});
}

void NodeLinks::add_flows(NodeId peer, uint32_t flows) {
  const auto found = links_.find(peer);
  if (found == links_.end() || !found->second.is_open) return;
  OpeningOrOpen& link = found->second;
  const uint32_t wanted = std::min<uint32_t>(flows, kFlowsPerLinkMax);
  if (wanted <= link.flows) return;
  BRAID_LOG_INFO(LogFields{.peer = link.peer.name},
                 "link to node '{}' gets {} flows per I/O loop, and had {}", link.peer.name, wanted,
                 link.flows);
  link.flows = wanted;
  tell_loops(AddFlows{peer, link.nonce, wanted});
}

bool NodeLinks::close_idle(const std::unordered_set<NodeId>& used, uint64_t idle_ms) {
  const uint64_t now_ms = uv_now(control_loop_.uv());
  std::vector<NodeId> idle;
  bool is_any_left = false;
  for (auto& [peer, link] : links_) {
    if (!link.is_open || used.contains(peer)) {
      link.last_used_ms = now_ms;
    } else if (now_ms - link.last_used_ms >= idle_ms) {
      idle.push_back(peer);
    } else {
      is_any_left = true;
    }
  }
  for (const NodeId peer : idle) {
    BRAID_LOG_INFO(LogFields{.peer = links_.at(peer).peer.name},
                   "link to node '{}' is closed: no job has used it for {} s",
                   links_.at(peer).peer.name, idle_ms / 1000);
    drop(peer, {StatusCode::Cancelled, "no job uses it"});
  }
  return is_any_left;
}

void NodeLinks::finish_waiting(OpeningOrOpen& link, const Status& status) {
  for (auto& callback : std::exchange(link.waiting, {})) {
    control_loop_.defer([callback = std::move(callback), status] { callback(status); });
  }
}

void NodeLinks::drop(NodeId peer, const Status& reason) {
  const auto found = links_.find(peer);
  if (found == links_.end()) return;
  OpeningOrOpen link = std::move(found->second);
  links_.erase(found);
  finish_waiting(link, reason);
  tell_loops(CloseLink{peer, link.nonce, reason});
}

void NodeLinks::drop_all(const Status& reason) {
  while (!links_.empty()) drop(links_.begin()->first, reason);
}

const Peer* NodeLinks::on_tried(const LinkTried& report) {
  if (find(report.peer, report.nonce) == nullptr) return nullptr;
  OpeningOrOpen& link = links_.at(report.peer);
  if (link.is_open) return nullptr;
  if (report.flows_open == 0) {
    drop(report.peer,
         report.error.with_context(fmt::format("cannot open a link to node '{}'", link.peer.name)));
    return nullptr;
  }
  if (!report.error.is_ok()) {
    BRAID_LOG_WARN(LogFields{.peer = link.peer.name},
                   "link to node '{}': only {} of {} flows are open on I/O loop {}: {}",
                   link.peer.name, report.flows_open, options_.flows_per_link, report.io_loop,
                   report.error.message());
  }
  link.loop_is_up[report.io_loop] = true;
  if (!std::all_of(link.loop_is_up.begin(), link.loop_is_up.end(),
                   [](bool is_up) { return is_up; }))
    return nullptr;
  link.is_open = true;
  link.deadline.reset();
  finish_waiting(link, Status::ok());
  return &link.peer;
}

}  // namespace braid
