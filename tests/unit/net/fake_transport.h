// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <unordered_set>
#include <utility>
#include <vector>

#include "loop/loop.h"
#include "net/transport.h"

namespace braid::testing {

// A transport whose links open as the test says, and carry nothing.
class FakeTransport final : public Transport {
 public:
  explicit FakeTransport(Loop& loop) : loop_(loop) {}

  void open_link(NodeId peer, OpenCallback callback) override {
    opened.push_back(peer);
    held_.push_back(std::move(callback));
    if (!holds_answers) answer();
  }
  // To all who asked and were not answered yet.
  void answer() {
    for (OpenCallback& callback : std::exchange(held_, {}))
      loop_.defer([callback = std::move(callback), result = open_result] { callback(result); });
  }
  bool close_idle_links(const std::unordered_set<NodeId>& used, uint64_t) override {
    used_links = used;
    return has_idle_links;
  }
  void add_flows(NodeId peer, uint32_t flows) override { added.emplace_back(peer, flows); }
  bool on_control_message(const Peer&, const proto::ControlMessage&) override { return false; }
  void on_peer_lost(NodeId peer) override { lost.push_back(peer); }
  Links& links(size_t io_loop) override { return io_loop == 0 ? first_links_ : links_; }
  void set_link_lost_callback(std::function<void(const Peer&, const Status&)>) override {}
  void close(std::function<void()> closed) override { loop_.defer(std::move(closed)); }
  std::string description() const override { return "no transport"; }
  std::vector<RailStatus> rails() const override { return {}; }
  TransportCounters counters() const override { return {}; }
  std::vector<LinkStatus> link_statuses() const override { return {}; }
  void query_flows(std::function<void(std::vector<FlowStatus>)> callback) override {
    loop_.defer([callback = std::move(callback)] { callback({}); });
  }

  Status open_result;
  bool holds_answers = false;  // until answer()
  std::vector<NodeId> opened;
  std::vector<NodeId> lost;
  std::optional<std::unordered_set<NodeId>> used_links;  // once somebody has looked for idle ones
  bool has_idle_links = false;
  std::vector<std::pair<NodeId, uint32_t>> added;  // flows, of links
  std::map<uint64_t, LinkLimits> limits;           // of jobs, on the first I/O loop

 private:
  struct NoLinks : Links {
    Link* find(NodeId) override { return nullptr; }
    void limit(uint64_t, const LinkLimits&) override {}
  };
  struct FirstLinks final : NoLinks {
    explicit FirstLinks(FakeTransport& transport) : transport_(transport) {}
    void limit(uint64_t job_key, const LinkLimits& limits) override {
      transport_.limits[job_key] = limits;
    }

   private:
    FakeTransport& transport_;
  };

  Loop& loop_;
  std::vector<OpenCallback> held_;
  FirstLinks first_links_{*this};
  NoLinks links_;
};

}  // namespace braid::testing
