// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "bench/pattern.h"
#include "planner/plan.h"
#include "planner/workload.h"

namespace braid::bench {

// The gradients of a trace in the order in which backward makes them, and where they lie: one after
// the other, without gaps between those of one dtype, so that every group of a plan can be
// submitted as one.
class Gradients {
 public:
  struct Tensor {
    std::string name;
    DataType dtype = DataType::Float32;
    uint64_t count = 0;
    uint64_t offset = 0;  // bytes
    uint64_t bytes() const { return count * element_bytes(dtype); }
  };

  // An error where a dtype does not hold the exact sums of so many ranks.
  static Result<Gradients> create(const Trace& trace, uint32_t rank, uint32_t world_size);
  // Values like those of gradients; nothing is known of their sums. An error unless all are
  // float32.
  static Result<Gradients> create_normal(const Trace& trace, uint32_t rank);

  const std::vector<Tensor>& tensors() const { return tensors_; }
  uint64_t bytes() const { return bytes_; }  // the gaps included

  bool has_known_sums() const { return !patterns_.empty(); }

  // This rank's, of one step.
  void fill(uint64_t step, uint8_t* memory) const;
  // Tensor `i`'s sum, where sums are known; nothing if it is right.
  std::optional<Pattern::Mismatch> verify(size_t i, uint64_t step, const void* sum) const;

 private:
  Gradients() = default;

  void add(const Trace::Tensor& tensor);
  void fill_normal(uint64_t step, uint8_t* memory) const;

  std::vector<Tensor> tensors_;
  uint64_t bytes_ = 0;
  std::map<DataType, Pattern> patterns_;
  std::vector<float> normal_;  // repeated; each tensor and step begins somewhere else in them
};

// One reduction has one dtype, and the engine cuts by itself: groups are parted where the dtype
// changes, and have one piece.
Plan executable(const Plan& plan, const Gradients& gradients);

// How ranks tell each other a plan: for each tensor, whether a group begins with it.
std::vector<uint8_t> encode(const Plan& plan, size_t tensors);
Plan decode(const std::vector<uint8_t>& begins);

}  // namespace braid::bench
