// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/lifetime.h"
#include "control/control_plane.h"
#include "loop/loop.h"

namespace braid::testing {

// A control plane without a network: keeps what is sent to peers, and delivers what a node sends to
// itself on the loop's next round, as the real one does.
class FakeControlPlane final : public ControlPlane {
 public:
  struct Sent {
    NodeId to = 0;
    std::vector<uint8_t> bytes;

    const proto::ControlMessage& message() const {
      return *flatbuffers::GetRoot<proto::ControlMessage>(bytes.data());
    }
    template <typename Table>
    const Table* as() const {
      return message().body_as<Table>();
    }
  };

  FakeControlPlane(Loop& loop, Peer self) : loop_(loop), self_(std::move(self)) {}

  // With a handler, messages to itself reach it; without, they are kept like all others.
  void set_handler(ControlPlaneHandler& handler) { handler_ = &handler; }
  void add_peer(const Peer& peer) { peers_[peer.id] = peer; }
  void remove_peer(NodeId id) { peers_.erase(id); }

  const Peer& self() const override { return self_; }
  void connect_for(std::optional<uint32_t> user, const std::string& host, uint16_t port,
                   ConnectCallback callback) override {
    connected_for.push_back(user);
    connects.push_back(host);
    connected_ports.push_back(port);
    Result<Peer> result = Status(StatusCode::Unavailable, "nobody listens at '" + host + "'");
    for (const auto& [id, peer] : peers_) {
      if (peer.address == host) result = peer;
    }
    if (host == self_.address) result = self_;
    loop_.defer([callback = std::move(callback), result] { callback(result); });
  }
  void connect_anew(const std::string& host, uint16_t port, ConnectCallback callback) override {
    connect_for(std::nullopt, host, port, std::move(callback));
  }
  const Peer* find(NodeId id) const override {
    if (id == self_.id) return &self_;
    const auto peer = peers_.find(id);
    return peer == peers_.end() ? nullptr : &peer->second;
  }
  Status send(NodeId to, flatbuffers::FlatBufferBuilder& message) override {
    if (find(to) == nullptr) return Status(StatusCode::Unavailable, "not connected");
    flatbuffers::Verifier verifier(message.GetBufferPointer(), message.GetSize());
    BRAID_ASSERT(proto::VerifyControlMessageBuffer(verifier), "a message that no peer would take");
    ++counters_.messages_sent;
    if (to == self_.id && handler_ != nullptr) {
      auto bytes = std::make_shared<flatbuffers::DetachedBuffer>(message.Release());
      loop_.defer(lifetime_.guard([this, bytes] {
        handler_->on_control_message(self_,
                                     *flatbuffers::GetRoot<proto::ControlMessage>(bytes->data()));
      }));
      return Status::ok();
    }
    // As the real one: the sender may send what goes to peers again.
    const uint8_t* bytes = message.GetBufferPointer();
    sent.push_back({to, {bytes, bytes + message.GetSize()}});
    return Status::ok();
  }
  std::optional<uint64_t> round_trip_ns(NodeId id) const override {
    const auto found = round_trips.find(id);
    return found == round_trips.end() ? std::nullopt : std::optional(found->second);
  }
  LinkKey link_key(NodeId opener, NodeId receiver, uint64_t nonce) const override {
    return make_link_key({}, opener, receiver, nonce);
  }
  std::vector<Peer> peers() const override {
    std::vector<Peer> result;
    for (const auto& [id, peer] : peers_) result.push_back(peer);
    return result;
  }
  const ControlPlaneCounters& counters() const override { return counters_; }

  // What was sent to `to` of this kind, oldest first; the pointers are good until `sent` changes.
  template <typename Table>
  std::vector<const Table*> sent_to(NodeId to) const {
    std::vector<const Table*> found;
    for (const Sent& one : sent) {
      if (one.to == to && one.as<Table>() != nullptr) found.push_back(one.as<Table>());
    }
    return found;
  }

  std::vector<Sent> sent;
  std::map<NodeId, uint64_t> round_trips;  // nanoseconds
  std::vector<std::string> connects;
  std::vector<uint16_t> connected_ports;
  std::vector<std::optional<uint32_t>> connected_for;

 private:
  Loop& loop_;
  Peer self_;
  ControlPlaneHandler* handler_ = nullptr;
  std::map<NodeId, Peer> peers_;
  ControlPlaneCounters counters_;
  Lifetime lifetime_;
};

// A message as the control plane would hand it over.
inline const proto::ControlMessage& as_message(flatbuffers::FlatBufferBuilder& builder) {
  return *flatbuffers::GetRoot<proto::ControlMessage>(builder.GetBufferPointer());
}

}  // namespace braid::testing
