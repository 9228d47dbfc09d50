// SPDX-License-Identifier: Apache-2.0
#include <atomic>
#include <thread>

#include <gtest/gtest.h>

#include "loop/door.h"
#include "loop/timer.h"
#include "transport_testing.h"

namespace braid::testing {
namespace {

// As in the daemon: every I/O loop has its thread.
TEST(TransportThreads, EveryLoopHasItsOwnFlows) {
  constexpr size_t kLoops = 2;
  constexpr uint64_t kChunks = 500;
  auto control_loop = std::move(Loop::create("control")).value();
  struct Node {
    std::vector<std::unique_ptr<Loop>> io_loops;
    std::vector<RecordingSink> sinks = std::vector<RecordingSink>(kLoops);
    std::unique_ptr<DeliveringControlPlane> control;
    std::unique_ptr<Transport> transport;
  };
  // DeliveringControlPlane speaks to a FakeNode; here it is enough to hand its messages over
  // ourselves.
  std::array<Node, 2> nodes;
  struct Wire final : ControlPlane {
    Wire(Loop& on, Peer me, Peer peer) : loop(on), self_(std::move(me)), other(std::move(peer)) {}
    const Peer& self() const override { return self_; }
    void connect_for(std::optional<uint32_t>, const std::string&, uint16_t,
                     ConnectCallback) override {}
    const Peer* find(NodeId id) const override { return id == other.id ? &other : nullptr; }
    Status send(NodeId, flatbuffers::FlatBufferBuilder& message) override {
      std::vector<uint8_t> bytes(message.GetBufferPointer(),
                                 message.GetBufferPointer() + message.GetSize());
      loop.defer([this, bytes] {
        to->on_control_message(self_, *proto::GetControlMessage(bytes.data()));
      });
      return Status::ok();
    }
    std::vector<Peer> peers() const override { return {other}; }
    const ControlPlaneCounters& counters() const override { return counters_; }
    Loop& loop;
    Peer self_;
    Peer other;
    Transport* to = nullptr;
    ControlPlaneCounters counters_;
  };
  const std::array<Peer, 2> peers{Peer{1, "node1", "127.0.0.1", 7410},
                                  Peer{2, "node2", "127.0.0.1", 7410}};
  std::array<std::unique_ptr<Wire>, 2> wires;
  for (size_t n = 0; n < 2; ++n) {
    std::vector<IoLoop> loops;
    for (size_t i = 0; i < kLoops; ++i) {
      nodes[n].io_loops.push_back(std::move(Loop::create("io")).value());
      loops.push_back({nodes[n].io_loops.back().get(), &nodes[n].sinks[i]});
    }
    wires[n] = std::make_unique<Wire>(*control_loop, peers[n], peers[1 - n]);
    nodes[n].transport =
        std::move(Transport::create(*control_loop, loops, TwoNodes::default_options(), *wires[n]))
            .value();
  }
  wires[0]->to = nodes[1].transport.get();
  wires[1]->to = nodes[0].transport.get();

  std::atomic<uint64_t> settled = 0;
  std::vector<std::shared_ptr<RecordingSource>> sources;
  std::vector<std::unique_ptr<Door<int>>> starts;
  for (size_t i = 0; i < kLoops; ++i) {
    sources.push_back(std::make_shared<RecordingSource>(20'000));
    sources.back()->on_settled = [&] { settled.fetch_add(1); };
    starts.push_back(std::make_unique<Door<int>>(*nodes[0].io_loops[i], 1, [&, i](int&) {
      Link* link = nodes[0].transport->links(i).find(2);
      ASSERT_NE(link, nullptr);
      for (uint64_t cookie = 0; cookie < kChunks; ++cookie) {
        link->submit(RecordingSource::chunk(sources[i], cookie));
      }
    }));
  }
  std::vector<std::thread> threads;
  for (auto& node : nodes) {
    for (auto& loop : node.io_loops) threads.emplace_back([&loop] { loop->run(); });
  }

  bool is_open = false;
  nodes[0].transport->open_link(2, [&](Status status) {
    EXPECT_TRUE(status) << status.to_string();
    is_open = status.is_ok();
    for (auto& start : starts) start->send(0);
  });
  int closed = 0;
  Timer watch(*control_loop);
  uint64_t waited_ms = 0;
  watch.start_repeating(5, [&] {
    waited_ms += 5;
    if (settled.load() < kLoops * kChunks && waited_ms < 30'000) return;
    watch.stop();
    for (auto& node : nodes) {
      node.transport->close([&] {
        if (++closed == 2) control_loop->stop();
      });
    }
  });
  control_loop->run();
  for (auto& node : nodes) {
    for (auto& loop : node.io_loops) loop->stop();
  }
  for (auto& thread : threads) thread.join();
  EXPECT_TRUE(is_open);
  for (size_t i = 0; i < kLoops; ++i) {
    EXPECT_TRUE(each_exactly(sources[i]->settled, kChunks, 1));
    EXPECT_TRUE(each_exactly(nodes[1].sinks[i].arrived, kChunks, 1));
    EXPECT_EQ(nodes[1].sinks[i].corrupt, 0u);
  }
  starts.clear();
}

}  // namespace
}  // namespace braid::testing
