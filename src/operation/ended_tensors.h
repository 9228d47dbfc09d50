// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <unordered_set>

namespace braid {

// Tensors that are not used any more, by hash: the last ones of many. What is still said of them
// comes soon, or never.
class EndedTensors {
 public:
  static constexpr size_t kKept = 1 << 14;

  void add(uint64_t hash) {
    if (!hashes_.insert(hash).second) return;
    order_.push_back(hash);
    if (order_.size() <= kKept) return;
    hashes_.erase(order_.front());
    order_.pop_front();
  }
  bool contains(uint64_t hash) const { return hashes_.contains(hash); }

 private:
  std::deque<uint64_t> order_;
  std::unordered_set<uint64_t> hashes_;
};

}  // namespace braid
