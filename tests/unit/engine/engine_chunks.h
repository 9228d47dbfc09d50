// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "engine/engine.h"

namespace braid::test {

inline constexpr NodeId kPredecessor = 1;
inline constexpr NodeId kSuccessor = 3;

// Records what is sent.
class SuccessorLink final : public Link, public Links {
 public:
  void submit(OutgoingChunk chunk) override { chunks.push_back(std::move(chunk)); }
  Link* find(NodeId peer) override { return peer == kSuccessor ? this : nullptr; }

  void limit(uint64_t job_key, const LinkLimits& limits) override {
    limited.emplace_back(job_key, limits);
  }

  std::vector<OutgoingChunk> chunks;
  std::vector<std::pair<uint64_t, LinkLimits>> limited;
};

struct NoJobMemory final : JobMemory {};

// Node 1 of three, with one rank and one engine; 100 floats of 1 in one unit: segments of 192, 192
// and 16 bytes.
class EngineChunks : public testing::Test {
 protected:
  EngineChunks() {
    Engine::Events events;
    events.on_done = [this](const OperationKey&) { ++done_; };
    events.on_retired = [this](const OperationKey&) { ++retired_; };
    events.drain_door = [this] {
      ++drained_;
      if (at_door_) std::exchange(at_door_, nullptr)();
    };
    engine_ = Engine::create(*loop_, EngineOptions{1, 0, 1 << 20, 64, 4}, std::move(events));
    engine_->set_links(link_);
  }

  Operation make_operation(Collective collective = Collective::AllReduce) {
    auto ring = std::make_shared<Ring>();
    ring->nodes = 3;
    ring->self = 1;
    ring->members = {kPredecessor, 2, kSuccessor};
    ring->routes = basic_routes(3, 1);
    ring->world_size = 3;
    ring->ranks_of_node = {1, 1, 1};
    Operation operation;
    operation.key = {7, 8, 9};
    operation.collective = collective;
    operation.count = 100;
    operation.ring = ring;
    operation.memory = std::make_shared<NoJobMemory>();
    operation.inputs = {reinterpret_cast<const uint8_t*>(input_.data())};
    operation.result = reinterpret_cast<uint8_t*>(result_.data());
    return operation;
  }

  static proto::ChunkHeader header(proto::Phase phase, uint32_t segment, uint32_t chunk) {
    proto::ChunkHeader header{};
    header.magic = proto::kChunkMagic;
    header.version = proto::kChunkVersion;
    header.phase = static_cast<uint8_t>(phase);
    header.job_key = 7;
    header.tensor = 8;
    header.step = 9;
    header.segment = static_cast<uint16_t>(segment);
    header.chunk = chunk;
    header.bytes = segment == 2 ? 16 : 64;
    return header;
  }

  void receive(const proto::ChunkHeader& chunk, NodeId from = kPredecessor) {
    const std::vector<float> payload(chunk.bytes / 4, 10.0F);
    engine_->on_chunk(from, chunk, {reinterpret_cast<const uint8_t*>(payload.data()), chunk.bytes});
  }
  void settle() { uv_run(loop_->uv(), UV_RUN_NOWAIT); }
  bool was_sent(proto::Phase phase, uint32_t segment, uint32_t chunk) const {
    return std::any_of(link_.chunks.begin(), link_.chunks.end(), [&](const OutgoingChunk& sent) {
      return sent.header.phase == static_cast<uint8_t>(phase) && sent.header.segment == segment &&
             sent.header.chunk == chunk;
    });
  }

  std::unique_ptr<Loop> loop_ = std::move(Loop::create("test")).value();
  SuccessorLink link_;
  std::vector<float> input_ = std::vector<float>(300, 1.0F);
  std::vector<float> result_ = std::vector<float>(300, -1.0F);
  int done_ = 0;
  int retired_ = 0;
  int drained_ = 0;
  std::function<void()> at_door_;
  std::unique_ptr<Engine> engine_;
};

}  // namespace braid::test
