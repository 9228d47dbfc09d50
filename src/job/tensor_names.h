// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <span>
#include <string>
#include <unordered_map>

#include "base/status.h"
#include "job/tensor_table.h"

namespace braid {

// The names that the trainers of one job on this node have registered, by hash. Operations go by
// the hash, so no two names may have the same one. Control loop only.
class TensorNames {
 public:
  // Mismatch: one of them has the hash of another name; says both.
  Status check(std::span<const Tensor> tensors) const;
  // Checked.
  void add(std::span<const Tensor> tensors);

 private:
  std::unordered_map<uint64_t, std::shared_ptr<const std::string>> names_;
};

}  // namespace braid
