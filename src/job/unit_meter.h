// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <deque>
#include <unordered_map>
#include <vector>

#include "collective/operation.h"

namespace braid {

// How long this node's all-reduces took, at which size, and how much the network carried meanwhile:
// what a cost model is fitted to. Control loop only.
class UnitMeter {
 public:
  static constexpr size_t kSamplesKept = 1024;
  // While one is stuck, others may go on.
  static constexpr size_t kFinishedKept = 1024;

  struct Sample {
    uint64_t bytes = 0;
    uint64_t nanoseconds = 0;
    // Bytes of all all-reduces that ended during it, itself included, over its own; of those that
    // had begun before it, the part that fell into its time.
    double concurrent = 1;
  };

  // It has all its inputs; its time begins when the next node is ready, too.
  void on_start(const OperationKey& key, uint64_t bytes) { running_[key].bytes = bytes; }
  void on_go(const OperationKey& key, uint64_t now_ns);
  void on_done(const OperationKey& key, uint64_t now_ns);

  // Those since the last call.
  std::vector<Sample> take();

 private:
  struct Unit {
    uint64_t bytes = 0;
    uint64_t since_ns = 0;  // 0: not in flight yet
    uint64_t until_ns = 0;
  };
  double carried_during(const Unit& unit) const;
  void forget_finished();

  std::unordered_map<OperationKey, Unit, OperationKeyHash> running_;
  std::deque<Unit> finished_;    // while something runs that began before they ended
  std::vector<Sample> samples_;  // a ring once it is full
  size_t next_ = 0;
};

}  // namespace braid
