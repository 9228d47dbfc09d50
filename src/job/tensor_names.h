// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/hash_tree.h"
#include "base/mutex.h"
#include "base/status.h"
#include "job/tensor_table.h"

namespace braid {

// The names that the trainers of one job on this node have registered, by hash. Operations go by
// the hash, so no two names may have the same one. Names come and go on the control loop.
class TensorNames {
 public:
  // Mismatch: one of them has the hash of another name; says both.
  Status check(std::span<const Tensor> tensors) const BRAID_EXCLUDES(mutex_);
  // Checked.
  void add(std::span<const Tensor> tensors) BRAID_EXCLUDES(mutex_);
  // What one trainer has added. Returns the hashes that no trainer has any more.
  std::vector<uint64_t> remove(std::span<const Tensor> tensors) BRAID_EXCLUDES(mutex_);
  // Any thread; nullptr: nobody has registered it.
  std::shared_ptr<const std::string> find(uint64_t hash) const BRAID_EXCLUDES(mutex_);

 private:
  struct Named {
    std::shared_ptr<const std::string> name;
    uint32_t trainers = 0;  // that have it
  };
  mutable Mutex mutex_;
  HashTree<Named> names_ BRAID_GUARDED_BY(mutex_);
};

}  // namespace braid
