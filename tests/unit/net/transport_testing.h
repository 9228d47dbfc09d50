// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "base/clock.h"
#include "loop/loop.h"
#include "net/transport.h"

namespace braid::testing {

// Remembers every chunk that was settled and how often.
class RecordingSource final : public ChunkSource {
 public:
  explicit RecordingSource(size_t chunk_bytes) : chunk_bytes_(chunk_bytes) {}

  // The chunk number `number` of this source, with bytes that follow from the number.
  static OutgoingChunk chunk(const std::shared_ptr<RecordingSource>& source, uint64_t number);
  static uint8_t byte_of(uint64_t number, size_t at) {
    return static_cast<uint8_t>(number * 31 + at * 7 + (at >> 8));
  }

  std::span<const uint8_t> payload_of(const OutgoingChunk& chunk) override;
  void on_chunk_settled(const OutgoingChunk& chunk, bool acknowledged) override;

  proto::AckTime ack_time = proto::AckTime::AtOnce;
  uint64_t job_key = 0;
  bool is_over = false;                 // gives no more bytes
  uint64_t given = 0;                   // calls of chunk_bytes
  std::map<uint64_t, int> settled;      // number → times acknowledged
  std::map<uint64_t, int> not_settled;  // number → times settled as not acknowledged
  std::function<void()> on_settled;

 private:
  const size_t chunk_bytes_;
  std::map<uint64_t, std::vector<uint8_t>> bytes_;  // of chunks on their way
};

// Checks the bytes of each chunk of a RecordingSource and counts how often it came.
class RecordingSink final : public ChunkSink {
 public:
  void on_chunk(NodeId from, const proto::ChunkHeader& header,
                std::span<const uint8_t> payload) override;

  ChunkSink* forward_to = nullptr;        // gets the chunks instead
  std::map<uint64_t, int> arrived;        // number → times
  std::map<uint64_t, uint8_t> ack_times;  // number → AckTime that it came with
  std::set<uint64_t> tokens;              // that chunks came with
  uint64_t corrupt = 0;
  NodeId last_from = 0;
  std::function<void()> on_arrived;
};

// Stands for the control plane between two nodes of one test: messages arrive on the next round of
// the loop.
class DeliveringControlPlane final : public ControlPlane {
 public:
  DeliveringControlPlane(Loop& loop, Peer self) : loop_(loop), self_(std::move(self)) {}

  void connect_to(const Peer& other, Transport& receiver) {
    other_ = &other, receiver_ = &receiver;
  }
  const Peer& self() const override { return self_; }
  void connect_for(std::optional<uint32_t>, const std::string&, uint16_t,
                   ConnectCallback) override {}
  void connect_anew(const std::string&, uint16_t, ConnectCallback) override {}
  const Peer* find(NodeId id) const override;
  Status send(NodeId to, flatbuffers::FlatBufferBuilder& message) override;
  std::optional<uint64_t> round_trip_ns(NodeId) const override { return std::nullopt; }
  LinkKey link_key(NodeId opener, NodeId receiver, uint64_t nonce) const override {
    return make_link_key({}, opener, receiver, nonce);
  }
  std::vector<Peer> peers() const override { return {}; }
  const ControlPlaneCounters& counters() const override { return counters_; }

  bool is_silent = false;  // messages get lost
  std::vector<std::vector<uint8_t>> sent;

 private:
  Loop& loop_;
  const Peer self_;
  const Peer* other_ = nullptr;
  Transport* receiver_ = nullptr;
  ControlPlaneCounters counters_;
};

// One of the two nodes: a transport with one I/O loop of its own.
class FakeNode {
 public:
  FakeNode(Loop& control_loop, NodeId id, const TransportOptions& options);
  ~FakeNode();

  Transport& transport() { return *transport_; }
  Link* link_to(const FakeNode& peer) { return transport_->links(0).find(peer.control.self().id); }
  NodeId id() const { return control.self().id; }

  std::unique_ptr<Loop> io_loop;
  DeliveringControlPlane control;
  RecordingSink sink;

 private:
  std::unique_ptr<Transport> transport_;
};

// Two nodes on the loopback device. All three loops are stepped by the test's own thread, so a test
// can let one of them stand still.
class TwoNodes {
 public:
  TwoNodes() : TwoNodes(default_options()) {}
  explicit TwoNodes(const TransportOptions& options) : TwoNodes(options, options) {}
  TwoNodes(const TransportOptions& options_a, const TransportOptions& options_b);
  ~TwoNodes();
  static TransportOptions default_options();

  // Steps the loops until `condition` holds; false after two minutes.
  bool run_until(const std::function<bool()>& condition);
  void step();
  // Opens the link from a to b.
  Status open();
  Status open(FakeNode& from, FakeNode& to);
  // The same, for tests with a short open_timeout_ms: tries again where a busy machine was too slow
  // for it.
  bool open_eventually();
  std::vector<FlowStatus> flows(FakeNode& node);
  // From a to b.
  void submit(const std::shared_ptr<RecordingSource>& source, uint64_t first, uint64_t count);
  // Submits the chunks 0 to `count` of a new source.
  std::shared_ptr<RecordingSource> submit(size_t chunk_bytes, uint64_t count);
  bool settles(const RecordingSource& source, uint64_t count);
  // Runs until the chunks 0 to `count` are settled. Each was acknowledged once, and its bytes came.
  void expect_delivered(const RecordingSource& source, uint64_t count);
  // The same, and no chunk came twice.
  void expect_delivered_once(const RecordingSource& source, uint64_t count);

  std::unique_ptr<Loop> control_loop;
  std::unique_ptr<FakeNode> a;
  std::unique_ptr<FakeNode> b;
  bool b_stands_still = false;
};

// The same, with a link from a to b.
class OpenNodes : public TwoNodes {
 public:
  explicit OpenNodes(const TransportOptions& options = default_options()) : TwoNodes(options) {
    EXPECT_TRUE(open());
  }
};

uint64_t open_flows(TwoNodes& nodes);  // of the first one

// The TCP sockets of this process that are connected, or that listen.
std::vector<int> connected_sockets();
std::vector<int> listening_sockets();

// Both ends of a TCP connection within this process.
struct Connection {
  int one_end = -1;
  int other_end = -1;
};
std::vector<Connection> connections();
// From now on packets that arrive at the socket get lost.
void drop_what_arrives(int socket);
void drop_both_ways(const Connection& connection);
void shut_all_connections();

// Every one of `count` chunks, from 0, is in `times` exactly `n` times, and no other.
bool each_exactly(const std::map<uint64_t, int>& times, uint64_t count, int n);

}  // namespace braid::testing
