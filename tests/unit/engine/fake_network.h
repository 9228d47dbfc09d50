// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <deque>
#include <random>
#include <span>
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
  double by_intake = 0.5;     // per delivery: the sink is asked how it takes the bytes in
};

// How often a way of taking bytes in has come up.
struct IntakeCounts {
  uint64_t stored = 0;   // whole chunks
  uint64_t folded = 0;   // the same
  uint64_t dropped = 0;  // chunks of which a part was taken in before the answer was another one

  IntakeCounts& operator+=(const IntakeCounts& other) {
    stored += other.stored;
    folded += other.folded;
    dropped += other.dropped;
    return *this;
  }
};

// A chunk that comes over a flow: its bytes are all there, but are handed over as a transport does
// that reads them from a socket, some now and some later.
class Arrival {
 public:
  Arrival(const proto::ChunkHeader& header, std::vector<uint8_t> bytes, bool by_intake)
      : header_(header), bytes_(std::move(bytes)), by_intake_(by_intake) {}

  const proto::ChunkHeader& header() const { return header_; }
  const std::vector<uint8_t>& bytes() const { return bytes_; }
  bool is_half_taken() const { return taken_ != 0; }

  // One callback of the loop. True: the chunk is acknowledged.
  bool go_on(Random& random, NodeId from, ChunkSink& sink, IntakeCounts& counts) {
    if (by_intake_ && !is_kept_) {
      const ChunkIntake intake = sink.intake(from, header_);
      if (taken_ == 0) {
        intake_ = intake;
        is_kept_ = intake.how == ChunkIntake::How::Whole;
      } else if (intake != intake_) {
        ++counts.dropped;
        return true;
      }
      if (!is_kept_) return take_in(random, from, sink, counts);
      if (chance(random, 0.5)) return false;  // the rest comes later
    }
    sink.on_chunk(from, header_, bytes_);
    return true;
  }

 private:
  bool take_in(Random& random, NodeId from, ChunkSink& sink, IntakeCounts& counts) {
    do {
      const std::span<const uint8_t> piece = next_piece(random);
      if (intake_.how == ChunkIntake::How::Store) {
        std::memcpy(intake_.store_at + taken_, piece.data(), piece.size());
      } else {
        sink.fold(from, header_, static_cast<uint32_t>(taken_), piece);
      }
      taken_ += piece.size();
    } while (taken_ != bytes_.size() && chance(random, 0.5));
    if (taken_ != bytes_.size()) return false;
    ++(intake_.how == ChunkIntake::How::Store ? counts.stored : counts.folded);
    sink.on_chunk_taken(from, header_);
    return true;
  }

  // A stored one may end anywhere.
  std::span<const uint8_t> next_piece(Random& random) const {
    const size_t left = bytes_.size() - taken_;
    const size_t unit = intake_.how == ChunkIntake::How::Store ? 1 : ChunkSink::kPieceBytes;
    const size_t most = (left + unit - 1) / unit;
    return std::span(bytes_).subspan(taken_, std::min(left, (1 + random() % most) * unit));
  }

  proto::ChunkHeader header_;
  std::vector<uint8_t> bytes_;
  bool by_intake_;
  bool is_kept_ = false;
  ChunkIntake intake_{};
  size_t taken_ = 0;
};

// One link: a link's queue, and flows that carry chunks in order. It does one thing at a time, when
// told to, chosen by chance: takes a chunk from the queue, delivers one or a part of one,
// acknowledges one, loses a flow, or repeats something from the past.
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
        return haunt();
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
  const IntakeCounts& intake_counts() const { return counts_; }

 private:
  struct InFlight {
    OutgoingChunk chunk;
    Arrival arrival;
    bool is_delivered = false;
  };

  void pull() {
    if (queue_.empty()) return;
    OutgoingChunk chunk = queue_.pop_front().chunk;
    const auto bytes = chunk.source->payload_of(chunk);
    if (bytes.empty()) return;
    auto& flow = flows_[random_() % flows_.size()];
    const proto::ChunkHeader header = chunk.header;
    flow.push_back({std::move(chunk), arrival_of(header, {bytes.begin(), bytes.end()})});
  }

  Arrival arrival_of(const proto::ChunkHeader& header, std::vector<uint8_t> bytes) {
    return {header, std::move(bytes), chance(random_, hostility_.by_intake)};
  }

  void deliver(std::deque<InFlight>& flow) {
    for (auto& in_flight : flow) {
      if (in_flight.is_delivered) continue;
      if (!in_flight.arrival.is_half_taken() && chance(random_, hostility_.keep_ghost))
        ghosts_.push_back(arrival_of(in_flight.chunk.header, in_flight.arrival.bytes()));
      // The flow may grow meanwhile, but its chunks stay where they are.
      in_flight.is_delivered = in_flight.arrival.go_on(random_, from_, sink_, counts_);
      delivered_ += in_flight.is_delivered ? 1 : 0;
      return;
    }
  }

  // Some of what was sent anew comes over the old flow all the same.
  void haunt() {
    if (ghosts_.empty() || !chance(random_, 0.2)) return;
    const size_t which = random_() % ghosts_.size();
    if (ghosts_[which].go_on(random_, from_, sink_, counts_))
      ghosts_.erase(ghosts_.begin() + static_cast<std::ptrdiff_t>(which));
  }

  void kill(std::deque<InFlight>& flow) {
    while (!flow.empty()) {
      InFlight& last = flow.back();
      if (!last.is_delivered && chance(random_, 10 * hostility_.keep_ghost))
        ghosts_.push_back(std::move(last.arrival));
      queue_.push_front({std::move(last.chunk)});
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
  std::deque<Arrival> ghosts_;
  IntakeCounts counts_;
  std::deque<OutgoingChunk> orphans_;
  uint64_t delivered_ = 0;
  bool is_lost_ = false;
};

}  // namespace braid::test
