// SPDX-License-Identifier: Apache-2.0
#include "job/tensor_names.h"

namespace braid {

Status TensorNames::check(std::span<const Tensor> tensors) const {
  const MutexLock lock(mutex_);
  for (const Tensor& tensor : tensors) {
    const auto* known = names_.find(tensor.hash);
    if (known == nullptr || **known == *tensor.name) continue;
    return make_status(StatusCode::Mismatch,
                       "tensors '{}' and '{}' have the same hash in this job: give one of them "
                       "another name",
                       **known, *tensor.name);
  }
  return Status::ok();
}

void TensorNames::add(std::span<const Tensor> tensors) {
  const MutexLock lock(mutex_);
  for (const Tensor& tensor : tensors) names_.add(tensor.hash, tensor.name);
}

std::shared_ptr<const std::string> TensorNames::find(uint64_t hash) const {
  const MutexLock lock(mutex_);
  const auto* found = names_.find(hash);
  return found == nullptr ? nullptr : *found;
}

}  // namespace braid
