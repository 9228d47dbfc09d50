// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <unordered_set>
#include <vector>

#include <braid.h>

#include "base/status.h"
#include "proto/types.h"

namespace braid::client {

struct Tensor {
  std::string name;
  DataType dtype = DataType::Float32;
  uint64_t count = 0;
  uint32_t backward_order = BRAID_NO_ORDER;
  bool dynamic = false;
  bool planned = false;
  std::string codec;                  // the daemon knows what is one
  uint32_t state_slots = 0;           // 0: no weight that the daemons update
  std::optional<uint64_t> last_step;  // that was submitted
};

// The job's registered tensors, by handle. Not thread-safe.
class TensorTable {
 public:
  // Checks an array of braid_tensor_options, whatever size the caller's struct has, also against
  // what is registered.
  Status parse(const braid_tensor_options* options, size_t count,
               std::vector<Tensor>& tensors) const;
  void add(std::vector<Tensor> tensors);

  const Tensor* find(uint32_t handle) const;
  Tensor& at(uint32_t handle) { return tensors_.at(handle); }
  uint32_t size() const { return static_cast<uint32_t>(tensors_.size()); }

 private:
  std::vector<Tensor> tensors_;
  std::unordered_set<std::string> names_;
};

}  // namespace braid::client
