// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "collective/operation.h"

namespace braid {

// How long this node's all-reduces took, at which size, and how many ran beside them: what a cost
// model is fitted to. Control loop only.
class UnitMeter {
 public:
  static constexpr size_t kSamplesKept = 1024;

  struct Sample {
    uint64_t bytes = 0;
    uint64_t nanoseconds = 0;
    double concurrent = 1;  // all-reduces in flight during it, itself included; mean over its time
  };

  // It has all its inputs; its time begins when the next node is ready, too.
  void on_start(const OperationKey& key, uint64_t bytes) { running_[key].bytes = bytes; }
  void on_go(const OperationKey& key, uint64_t now_ns);
  void on_done(const OperationKey& key, uint64_t now_ns);

  // Those since the last call.
  std::vector<Sample> take();

 private:
  struct Running {
    uint64_t bytes = 0;
    uint64_t since_ns = 0;  // 0: not in flight yet
    double area = 0;        // of the whole meter then
  };
  void advance(uint64_t now_ns);

  std::unordered_map<OperationKey, Running, OperationKeyHash> running_;
  std::vector<Sample> samples_;  // a ring once it is full
  size_t next_ = 0;
  size_t in_flight_ = 0;
  uint64_t now_ns_ = 0;
  double area_ = 0;  // the integral over time of how many were in flight
};

}  // namespace braid
