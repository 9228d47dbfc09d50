// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <vector>

#include "engine_world.h"

// What an EngineWorld is made of, for its two source files.
namespace braid::test {

struct EngineWorld::Memory final : JobMemory {
  std::vector<std::vector<uint8_t>> inputs;
  std::vector<uint8_t> result;
};

struct EngineWorld::NodePart {
  std::shared_ptr<Memory> memory;  // dropped when the job layer lets go of it
  std::weak_ptr<Memory> watch;
  bool is_submitted = false;
  bool was_told_go = false;
  uint32_t done = 0;  // events, of all loops
  uint32_t retired = 0;
  std::vector<uint8_t> result;  // as it was when the last loop was done
};

struct EngineWorld::Running {
  OperationSpec spec;
  OperationKey key;
  std::vector<std::vector<uint8_t>> inputs;  // by rank
  std::vector<NodePart> parts;               // by node
  bool is_aborted = false;
};

struct EngineWorld::Endpoint final : Links {
  std::unique_ptr<Engine> engine;
  std::unique_ptr<FakeLink> link;  // to the successor
  NodeId successor = 0;
  std::deque<std::function<void()>> door;

  Link* find(NodeId peer) override { return peer == successor ? link.get() : nullptr; }
  void drain() {
    while (!door.empty()) {
      const auto message = std::move(door.front());
      door.pop_front();
      message();
    }
  }
};

}  // namespace braid::test
