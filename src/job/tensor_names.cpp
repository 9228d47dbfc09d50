// SPDX-License-Identifier: Apache-2.0
#include "job/tensor_names.h"

namespace braid {

Status TensorNames::check(std::span<const Tensor> tensors) const {
  const MutexLock lock(mutex_);
  for (const Tensor& tensor : tensors) {
    const auto* known = names_.find(tensor.hash);
    if (known == nullptr || *known->name == *tensor.name) continue;
    return make_status(StatusCode::Mismatch,
                       "tensors '{}' and '{}' have the same hash in this job: give one of them "
                       "another name",
                       *known->name, *tensor.name);
  }
  return Status::ok();
}

void TensorNames::add(std::span<const Tensor> tensors) {
  const MutexLock lock(mutex_);
  for (const Tensor& tensor : tensors) {
    names_.add(tensor.hash, {tensor.name, 0});
    ++names_.find(tensor.hash)->trainers;
  }
}

std::vector<uint64_t> TensorNames::remove(std::span<const Tensor> tensors) {
  const MutexLock lock(mutex_);
  std::vector<uint64_t> gone;
  for (const Tensor& tensor : tensors) {
    if (--names_.find(tensor.hash)->trainers != 0) continue;
    names_.remove(tensor.hash);
    gone.push_back(tensor.hash);
  }
  return gone;
}

std::shared_ptr<const std::string> TensorNames::find(uint64_t hash) const {
  const MutexLock lock(mutex_);
  const auto* found = names_.find(hash);
  return found == nullptr ? nullptr : found->name;
}

}  // namespace braid
