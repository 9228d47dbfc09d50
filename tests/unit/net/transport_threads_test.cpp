// SPDX-License-Identifier: Apache-2.0
#include <atomic>
#include <thread>

#include "loop/door.h"
#include "loop/timer.h"
#include "transport_testing.h"

namespace braid::testing {
namespace {

constexpr size_t kLoops = 2;
constexpr uint64_t kChunks = 500;

// A node's I/O loops, which run() gives a thread each.
struct ThreadedNode {
  ThreadedNode(Loop& control_loop, const Peer& self) : wire(control_loop, self) {
    std::vector<IoLoop> loops;
    for (RecordingSink& sink : sinks) {
      io_loops.push_back(std::move(Loop::create("io")).value());
      loops.push_back({io_loops.back().get(), &sink});
    }
    transport = std::move(Transport::create(control_loop, loops, TwoNodes::default_options(), wire))
                    .value();
  }
  void run() {
    for (auto& loop : io_loops) threads.emplace_back([&loop] { loop->run(); });
  }
  void stop() {
    for (auto& loop : io_loops) loop->stop();
    for (auto& thread : threads) thread.join();
  }

  std::vector<std::unique_ptr<Loop>> io_loops;
  std::vector<RecordingSink> sinks = std::vector<RecordingSink>(kLoops);
  DeliveringControlPlane wire;
  std::unique_ptr<Transport> transport;
  std::vector<std::thread> threads;
};

// As in the daemon: every I/O loop has its thread.
TEST(TransportThreads, EveryLoopHasItsOwnFlows) {
  auto control_loop = std::move(Loop::create("control")).value();
  const Peer one{1, "node1", "127.0.0.1", 7410};
  const Peer two{2, "node2", "127.0.0.1", 7410};
  ThreadedNode sender(*control_loop, one);
  ThreadedNode receiver(*control_loop, two);
  sender.wire.connect_to(two, *receiver.transport);
  receiver.wire.connect_to(one, *sender.transport);

  std::atomic<uint64_t> settled = 0;
  std::vector<std::shared_ptr<RecordingSource>> sources;
  std::vector<std::unique_ptr<Door<int>>> starts;
  for (size_t i = 0; i < kLoops; ++i) {
    sources.push_back(std::make_shared<RecordingSource>(20'000));
    sources.back()->on_settled = [&] { settled.fetch_add(1); };
    starts.push_back(std::make_unique<Door<int>>(*sender.io_loops[i], 1, [&, i](int&) {
      Link* link = sender.transport->links(i).find(two.id);
      ASSERT_NE(link, nullptr);
      for (uint64_t cookie = 0; cookie < kChunks; ++cookie) {
        link->submit(RecordingSource::chunk(sources[i], cookie));
      }
    }));
  }
  for (ThreadedNode* node : {&sender, &receiver}) node->run();

  bool is_open = false;
  sender.transport->open_link(two.id, [&](Status status) {
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
    for (ThreadedNode* node : {&sender, &receiver}) {
      node->transport->close([&] {
        if (++closed == 2) control_loop->stop();
      });
    }
  });
  control_loop->run();
  for (ThreadedNode* node : {&sender, &receiver}) node->stop();
  EXPECT_TRUE(is_open);
  for (size_t i = 0; i < kLoops; ++i) {
    EXPECT_TRUE(each_exactly(sources[i]->settled, kChunks, 1));
    EXPECT_TRUE(each_exactly(receiver.sinks[i].arrived, kChunks, 1));
    EXPECT_EQ(receiver.sinks[i].corrupt, 0u);
  }
  starts.clear();
}

}  // namespace
}  // namespace braid::testing
