// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <random>
#include <span>
#include <unordered_map>
#include <vector>

#include <poll.h>

#include "base/clock.h"
#include "base/status.h"
#include "bench/delay_line/losses.h"
#include "bench/delay_line/packets.h"
#include "bench/delay_line/tap.h"

namespace braid::delay_line {

struct LineOptions {
  uint64_t delay_ns = 0;         // from any node to any other
  uint64_t jitter_ns = 0;        // more or less than that, evenly spread; at most delay_ns
  double loss_percent = 0;       // of all packets, each way
  uint64_t queue_bytes_max = 0;  // of memory for what a node has sent and has not arrived
  uint64_t seed = 1;             // of jitter and loss
};

struct Counts {
  uint64_t frames = 0;   // delivered
  uint64_t bytes = 0;    // of them
  uint64_t lost = 0;     // packets, as loss_percent wants it
  uint64_t dropped = 0;  // frames that found queue_bytes_max reached
  uint64_t refused = 0;  // frames for an unknown address, or that a node's kernel did not take

  Counts& operator+=(const Counts& other);
};

// The NICs of all nodes, and which one has an address. Does not change once carriers run.
class Network {
 public:
  static constexpr size_t kNobody = SIZE_MAX;

  explicit Network(std::vector<Tap> taps);

  size_t size() const { return taps_.size(); }
  int fd(size_t node) const { return taps_[node].fd.get(); }
  size_t node_of(uint64_t address) const;

 private:
  std::vector<Tap> taps_;
  std::unordered_map<uint64_t, size_t> node_of_address_;
};

// Takes what some of the nodes send and hands it to its destinations, any node of the network,
// delay_ns later, less what is lost. Frames of a node stay in their order, so jitter makes those
// behind a late one late as well. Each carrier has a thread of its own; each node belongs to one.
class Carrier {
 public:
  // `network` outlives the carrier.
  Carrier(const Network& network, const std::vector<size_t>& nodes, const LineOptions& options);

  // Carries frames until `stop_fd` is readable.
  Status run(int stop_fd);

  const Counts& counts() const { return counts_; }

 private:
  struct Buffer {
    std::unique_ptr<std::byte[]> data;
    size_t capacity = 0;

    explicit Buffer(size_t bytes);
    std::span<std::byte> span() const { return {data.get(), capacity}; }
  };
  struct Delayed {
    uint64_t due_ns;
    Buffer buffer;
    size_t bytes;

    Frame frame() const { return buffer.span().first(bytes); }
  };
  // A node, and what it has sent.
  struct Sender {
    size_t node = 0;
    std::deque<Delayed> queue;
    uint64_t queue_bytes = 0;
    uint64_t last_due_ns = 0;
  };

  bool wait(uint64_t now_ns);
  Status receive(Sender& sender);
  void admit(Sender& sender, Frame frame);
  void enqueue(Sender& sender, Delayed delayed);
  // With room for that much.
  Buffer take_buffer(size_t bytes);
  void give_back(Buffer buffer);
  void deliver_due(uint64_t now_ns);
  void deliver(size_t from, Frame frame);
  void write(size_t to, Frame frame);

  const Network& network_;
  LineOptions options_;
  SystemClock clock_;
  std::vector<Sender> senders_;
  std::vector<pollfd> polls_;  // of the senders, then stop_fd
  Losses losses_;
  std::mt19937_64 random_;
  Buffer arrived_;             // what the next read fills
  std::vector<Buffer> spare_;  // large ones, the last used last
  Counts counts_;
};

}  // namespace braid::delay_line
