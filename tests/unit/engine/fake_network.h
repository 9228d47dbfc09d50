// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <deque>
#include <random>
#include <utility>
#include <vector>

#include "net/fair_queue.h"

namespace braid::test {

using Random = std::mt19937_64;

inline bool chance(Random& random, double probability) {
  return std::uniform_real_distribution<double>(0, 1)(random) < probability;
}

struct Hostility {
  double kill_flow = 0.01;   // per step: what was not acknowledged on a flow goes back to the queue
  double keep_ghost = 0.05;  // per delivery: the chunk comes a second time, some time later
  bool submit_pulls = false;  // the link takes bytes from within submit()
};

// One link: a link's queue, and flows that carry chunks in order. It does one thing at a time, when
// told to, chosen by chance: takes a chunk from the queue, delivers one, acknowledges one, loses a
// flow, or repeats something from the past.
class FakeLink final : public Link {
 public:
  FakeLink(Random& random, Hostility hostility, NodeId from, ChunkSink& sink)
      : random_(random), hostility_(hostility), from_(from), sink_(sink), flows_(3) {}

  void submit(OutgoingChunk chunk) override {
    if (is_lost_) {
      orphans_.push_back(std::move(chunk));
      return;
    }
    queue_.push_back({std::move(chunk)});
    if (hostility_.submit_pulls && chance(random_, 0.5)) pull();
  }

  bool is_idle() const {
    for (const auto& flow : flows_) {
      if (!flow.empty()) return false;
    }
    return queue_.empty() && ghosts_.empty() && orphans_.empty();
  }

  void step() {
    if (is_lost_) return settle_orphans();
    auto& flow = flows_[random_() % flows_.size()];
    if (chance(random_, hostility_.kill_flow)) return kill(flow);
    switch (random_() % 4) {
      case 0:
        return pull();
      case 1:
        return deliver(flow);
      case 2:
        if (!flow.empty() && flow.front().is_delivered) {
          const InFlight settled = std::move(flow.front());
          flow.pop_front();
          settled.chunk.source->on_chunk_settled(settled.chunk, true);
        }
        return;
      case 3:
        if (!ghosts_.empty() && chance(random_, 0.1)) {
          const Ghost ghost = std::move(ghosts_.front());
          ghosts_.pop_front();
          sink_.on_chunk(from_, ghost.header, ghost.bytes);
        }
        return;
    }
  }

  // The peer is gone: nothing is delivered any more, everything will be settled as not
  // acknowledged.
  void lose() {
    is_lost_ = true;
    for (auto& flow : flows_) {
      for (auto& in_flight : flow) orphans_.push_back(std::move(in_flight.chunk));
      flow.clear();
    }
    while (!queue_.empty()) orphans_.push_back(queue_.pop_front().chunk);
    ghosts_.clear();
  }

  uint64_t delivered() const { return delivered_; }

 private:
  struct InFlight {
    OutgoingChunk chunk;
    std::vector<uint8_t> bytes;
    bool is_delivered = false;
  };
  struct Ghost {
    proto::ChunkHeader header;
    std::vector<uint8_t> bytes;
  };

  void pull() {
    if (queue_.empty()) return;
    OutgoingChunk chunk = queue_.pop_front().chunk;
    const auto bytes = chunk.source->payload_of(chunk);
    if (bytes.empty()) return;
    flows_[random_() % flows_.size()].push_back({std::move(chunk), {bytes.begin(), bytes.end()}});
  }

  void deliver(std::deque<InFlight>& flow) {
    for (auto& in_flight : flow) {
      if (in_flight.is_delivered) continue;
      in_flight.is_delivered = true;
      ++delivered_;
      if (chance(random_, hostility_.keep_ghost))
        ghosts_.push_back({in_flight.chunk.header, in_flight.bytes});
      const auto bytes = in_flight.bytes;  // the call may add to the flow
      sink_.on_chunk(from_, in_flight.chunk.header, bytes);
      return;
    }
  }

  void kill(std::deque<InFlight>& flow) {
    while (!flow.empty()) {
      queue_.push_front({std::move(flow.back().chunk)});
      flow.pop_back();
    }
  }

  void settle_orphans() {
    if (orphans_.empty()) return;
    const OutgoingChunk chunk = std::move(orphans_.front());
    orphans_.pop_front();
    chunk.source->on_chunk_settled(chunk, false);
  }

  Random& random_;
  const Hostility hostility_;
  const NodeId from_;
  ChunkSink& sink_;
  FairQueue queue_;
  std::vector<std::deque<InFlight>> flows_;
  std::deque<Ghost> ghosts_;
  std::deque<OutgoingChunk> orphans_;
  uint64_t delivered_ = 0;
  bool is_lost_ = false;
};

}  // namespace braid::test
