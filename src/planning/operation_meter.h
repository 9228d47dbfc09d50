// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "engine/operation.h"

namespace braid {

// How long this node's all-reduces took, and how much the network carried meanwhile: what a cost
// model is fitted to. Those that run side by side share the network, so each of them takes as long
// as one of all the bytes that came in its time. Control loop only.
class OperationMeter {
 public:
  static constexpr size_t kSamplesKept = 1024;

  struct Sample {
    uint64_t id = 0;     // the same on all nodes
    uint64_t bytes = 0;  // of all-reduces, carried meanwhile; its own at least
    uint64_t nanoseconds = 0;
  };

  explicit OperationMeter(uint32_t nodes) : nodes_(nodes) {}

  // It has all its inputs; its time begins when the next node is ready, too. `carried`:
  // EngineCounters::bytes_carried, of whatever operations.
  void on_start(const OperationKey& key, uint64_t bytes) { running_[key].bytes = bytes; }
  void on_go(const OperationKey& key, uint64_t now_ns, uint64_t carried);
  void on_done(const OperationKey& key, uint64_t now_ns, uint64_t carried);

  // Those since the last call.
  std::vector<Sample> take();

 private:
  struct Running {
    uint64_t bytes = 0;
    uint64_t since_ns = 0;  // 0: not in flight yet
    uint64_t carried = 0;   // before it
  };
  // One node carries what it has reduced.
  uint64_t so_far(uint64_t carried) const { return nodes_ == 1 ? reduced_ : carried; }

  const uint32_t nodes_;
  std::unordered_map<OperationKey, Running, OperationKeyHash> running_;
  uint64_t reduced_ = 0;         // bytes of all that ended
  std::vector<Sample> samples_;  // a ring once it is full
  size_t next_ = 0;
};

}  // namespace braid
