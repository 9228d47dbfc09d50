// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/lifetime.h"
#include "base/peer.h"
#include "check/path_facts.h"
#include "check/path_sender.h"
#include "check/tcp_segments_sent.h"
#include "loop/work_thread.h"
#include "net/transport.h"

namespace braid {

// Measures what this node's links carry, one measurement after the other: how much of what is sent
// to a node is acknowledged, over one flow or over all. Control loop only; made before the I/O
// loops run, and destroyed when they do not any more.
class PathMeter {
 public:
  static constexpr uint32_t kMillisecondsMax = 2000;
  static constexpr size_t kWaitingMax = 128;

  struct Options {
    uint32_t flows_per_link = 0;  // on each I/O loop
    uint32_t window_bytes = 0;
    uint32_t chunk_bytes = 0;
  };
  struct Wish {
    Peer peer;  // a link to it is open
    bool is_one_flow = false;
    uint32_t milliseconds = 0;           // at most kMillisecondsMax are taken
    std::vector<std::string> addresses;  // of the peer's rails
  };
  using Measured = std::function<void(const PathRate&)>;

  // `transport` and `worker`, which reads what the kernel has sent, outlive it.
  PathMeter(Loop& control_loop, const std::vector<IoLoop>& io_loops, Transport& transport,
            WorkThread& worker, Options options);

  // `measured` comes once, later: after those that wait already.
  void measure(Wish wish, Measured measured);

 private:
  struct Waiting {
    Wish wish;
    Measured measured;
  };
  // The measurement that runs.
  struct Running {
    uint64_t number = 0;
    size_t reports_awaited = 0;
    PathRate rate;
    TcpSegmentsSent before;
    uint64_t failures_before = 0;
  };

  void begin_next();
  void look_at_segments(std::function<void(TcpSegmentsSent)> told);
  void look_at_flows(std::function<void(std::vector<FlowStatus>)> told);
  void send();
  void on_report(const PathSender::Report& report);
  void finish(const std::vector<FlowStatus>& flows);
  const Wish& wish() const { return waiting_.front().wish; }

  Transport& transport_;
  WorkThread& worker_;
  const Options options_;
  Door<PathSender::Report> reports_;
  std::vector<std::unique_ptr<PathSender>> senders_;  // of each I/O loop
  std::deque<Waiting> waiting_;                       // the first one runs
  Running running_;
  uint64_t numbers_ = 0;
  Lifetime lifetime_;
};

}  // namespace braid
