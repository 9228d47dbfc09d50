// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <deque>
#include <functional>
#include <iterator>
#include <map>
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
  std::map<NodeId, std::unique_ptr<FakeLink>> links;
  NodeId successor = 0;
  std::deque<std::function<void()>> door;

  Link* find(NodeId peer) override {
    const auto found = links.find(peer);
    return found == links.end() ? nullptr : found->second.get();
  }
  void limit(uint64_t, const LinkLimits&) override {}
  bool is_idle() const {
    return std::all_of(links.begin(), links.end(),
                       [](const auto& link) { return link.second->is_idle(); });
  }
  void step_link(Random& random) {
    if (links.empty()) return;
    std::next(links.begin(), static_cast<int64_t>(random() % links.size()))->second->step();
  }
  void drain() {
    while (!door.empty()) {
      const auto message = std::move(door.front());
      door.pop_front();
      message();
    }
  }
};

}  // namespace braid::test
