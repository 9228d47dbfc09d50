// SPDX-License-Identifier: Apache-2.0
#include "bench/delay_line/carrier.h"

#include <algorithm>
#include <cerrno>
#include <limits>
#include <utility>

#include <unistd.h>

#include "base/assert.h"

namespace braid::delay_line {
namespace {

// As many frames are taken from one node before the others, and what is due, have their turn.
constexpr int kFramesPerTurn = 16;
// A smaller frame is copied to memory of its size, a larger one stays where it was read.
constexpr size_t kSmallBytes = 4096;
constexpr size_t kSpareBuffersMax = 256;
constexpr uint64_t kNever = std::numeric_limits<uint64_t>::max();
constexpr size_t kAddressAt = sizeof(OffloadHeader);
constexpr size_t kHeadersBytes = kAddressAt + 14;
constexpr uint8_t kGroupBit = 1;  // in the first byte of a multicast or broadcast address

}  // namespace

Counts& Counts::operator+=(const Counts& other) {
  frames += other.frames;
  bytes += other.bytes;
  lost += other.lost;
  dropped += other.dropped;
  refused += other.refused;
  return *this;
}

Network::Network(std::vector<Tap> taps) : taps_(std::move(taps)) {
  for (size_t i = 0; i < taps_.size(); ++i) node_of_address_[taps_[i].address] = i;
}

size_t Network::node_of(uint64_t address) const {
  const auto found = node_of_address_.find(address);
  return found == node_of_address_.end() ? kNobody : found->second;
}

Carrier::Carrier(const Network& network, const std::vector<size_t>& nodes,
                 const LineOptions& options)
    : network_(network),
      options_(options),
      senders_(nodes.size()),
      losses_(options.loss_percent, options.seed),
      random_(options.seed),
      arrived_(kFrameBytesMax) {
  BRAID_ASSERT(options.jitter_ns <= options.delay_ns, "a frame cannot arrive before it was sent");
  for (size_t i = 0; i < nodes.size(); ++i) {
    senders_[i].node = nodes[i];
    polls_.push_back({network.fd(nodes[i]), POLLIN, 0});
  }
}

Status Carrier::run(int stop_fd) {
  polls_.push_back({stop_fd, POLLIN, 0});
  while (true) {
    if (!wait(clock_.now_ns())) return Status::from_errno(errno, "ppoll");
    if (polls_.back().revents != 0) return Status::ok();
    for (size_t i = 0; i < senders_.size(); ++i) {
      if (polls_[i].revents == 0) continue;
      BRAID_RETURN_IF_ERROR(receive(senders_[i]));
    }
    deliver_due(clock_.now_ns());
  }
}

// Until a node has sent something, the next frame is due, or it is time to stop.
bool Carrier::wait(uint64_t now_ns) {
  uint64_t next_ns = kNever;
  for (const Sender& sender : senders_) {
    if (!sender.queue.empty()) next_ns = std::min(next_ns, sender.queue.front().due_ns);
  }
  const uint64_t left_ns = next_ns > now_ns ? next_ns - now_ns : 0;
  const timespec timeout{static_cast<time_t>(left_ns / 1'000'000'000),
                         static_cast<long>(left_ns % 1'000'000'000)};
  const int ready =
      ::ppoll(polls_.data(), polls_.size(), next_ns == kNever ? nullptr : &timeout, nullptr);
  return ready >= 0 || errno == EINTR;
}

Status Carrier::receive(Sender& sender) {
  for (int i = 0; i < kFramesPerTurn; ++i) {
    const ssize_t bytes = ::read(network_.fd(sender.node), arrived_.data.get(), arrived_.capacity);
    if (bytes < 0) {
      if (errno == EAGAIN || errno == EINTR) break;
      return Status::from_errno(errno, "reading what a node has sent");
    }
    if (static_cast<size_t>(bytes) < kHeadersBytes) continue;
    admit(sender, arrived_.span().first(static_cast<size_t>(bytes)));
  }
  return Status::ok();
}

void Carrier::admit(Sender& sender, Frame frame) {
  uint64_t due_ns = clock_.now_ns() + options_.delay_ns;
  if (options_.jitter_ns > 0) {
    std::uniform_int_distribution<uint64_t> more_ns(0, 2 * options_.jitter_ns);
    due_ns += more_ns(random_) - options_.jitter_ns;
    due_ns = sender.last_due_ns = std::max(due_ns, sender.last_due_ns);
  }
  const uint32_t packets = packets_of(frame);
  uint32_t arriving = 0;
  for (const PacketRange& range : losses_.arriving(packets)) {
    arriving += range.end - range.begin;
    if (range == PacketRange{0, packets} && frame.size() > kSmallBytes) {
      enqueue(sender, {due_ns, std::exchange(arrived_, take_buffer(kFrameBytesMax)), frame.size()});
      return;
    }
    Buffer buffer = take_buffer(frame.size());
    const size_t bytes = cut(frame, range, buffer.span());
    enqueue(sender, {due_ns, std::move(buffer), bytes});
  }
  counts_.lost += packets - arriving;
}

void Carrier::enqueue(Sender& sender, Delayed delayed) {
  if (sender.queue_bytes + delayed.buffer.capacity > options_.queue_bytes_max) {
    ++counts_.dropped;
    give_back(std::move(delayed.buffer));
    return;
  }
  sender.queue_bytes += delayed.buffer.capacity;
  sender.queue.push_back(std::move(delayed));
}

Carrier::Buffer::Buffer(size_t bytes)
    : data(std::make_unique_for_overwrite<std::byte[]>(bytes)), capacity(bytes) {}

Carrier::Buffer Carrier::take_buffer(size_t bytes) {
  if (bytes <= kSmallBytes) return Buffer(bytes);
  if (spare_.empty()) return Buffer(kFrameBytesMax);
  Buffer buffer = std::move(spare_.back());
  spare_.pop_back();
  return buffer;
}

void Carrier::give_back(Buffer buffer) {
  if (buffer.capacity == kFrameBytesMax && spare_.size() < kSpareBuffersMax) {
    spare_.push_back(std::move(buffer));
  }
}

void Carrier::deliver_due(uint64_t now_ns) {
  for (Sender& sender : senders_) {
    while (!sender.queue.empty() && sender.queue.front().due_ns <= now_ns) {
      Delayed& first = sender.queue.front();
      deliver(sender.node, first.frame());
      sender.queue_bytes -= first.buffer.capacity;
      give_back(std::move(first.buffer));
      sender.queue.pop_front();
    }
  }
}

void Carrier::deliver(size_t from, Frame frame) {
  if ((std::to_integer<uint8_t>(frame[kAddressAt]) & kGroupBit) != 0) {
    for (size_t to = 0; to < network_.size(); ++to) {
      if (to != from) write(to, frame);
    }
    return;
  }
  const size_t to = network_.node_of(ethernet_address(frame.data() + kAddressAt));
  if (to == Network::kNobody) {
    ++counts_.refused;
    return;
  }
  write(to, frame);
}

void Carrier::write(size_t to, Frame frame) {
  if (::write(network_.fd(to), frame.data(), frame.size()) < 0) {
    ++counts_.refused;
    return;
  }
  ++counts_.frames;
  counts_.bytes += frame.size();
}

}  // namespace braid::delay_line
