// SPDX-License-Identifier: Apache-2.0
#include "job/tensor_table.h"

#include <algorithm>

#include "base/hash.h"

namespace braid {

Result<uint32_t> TensorTable::add(const proto::RegisterTensors& message) {
  std::vector<Tensor> added;
  std::unordered_map<uint64_t, uint32_t> hashes;
  uint64_t set = fnv1a64("set");
  if (tensors_.size() + message.tensors()->size() > kTensorsMax) {
    return make_status(StatusCode::ResourceExhausted, "a trainer can register {} tensors at most",
                       kTensorsMax);
  }
  for (const proto::TensorDescription* description : *message.tensors()) {
    Tensor tensor;
    tensor.name = std::make_shared<const std::string>(description->name()->str());
    if (tensor.name->empty() || tensor.name->size() > kNameBytesMax) {
      return make_status(StatusCode::InvalidArgument,
                         "a tensor's name has {} bytes; 1 to {} are possible", tensor.name->size(),
                         kNameBytesMax);
    }
    if (description->dtype() >= kDataTypeCount) {
      return make_status(StatusCode::InvalidArgument, "tensor '{}': no such dtype: {}",
                         *tensor.name, description->dtype());
    }
    tensor.hash = fnv1a64(*tensor.name);
    tensor.dtype = static_cast<DataType>(description->dtype());
    tensor.count = description->count();
    tensor.backward_order = description->backward_order();
    tensor.is_dynamic = description->dynamic();
    if (description->planned() && tensor.is_dynamic) {
      return make_status(StatusCode::InvalidArgument,
                         "tensor '{}' is both dynamic and planned; a plan needs registered counts",
                         *tensor.name);
    }
    if (description->planned()) {
      tensor.plan_set = 1;  // until all are known
      set = mix64(set ^ mix64(tensor.hash + tensor.count));
      set = mix64(set ^ (uint64_t{tensor.backward_order} << 8 | description->dtype()));
    }
    const auto handle = static_cast<uint32_t>(tensors_.size() + added.size());
    if (by_hash_.contains(tensor.hash) || !hashes.emplace(tensor.hash, handle).second) {
      return make_status(
          StatusCode::AlreadyExists,
          "tensor '{}' is registered already (or its name collides with another one's)",
          *tensor.name);
    }
    added.push_back(std::move(tensor));
  }
  const auto first = static_cast<uint32_t>(tensors_.size());
  for (Tensor& tensor : added) {
    if (tensor.plan_set != 0) tensor.plan_set = std::max<uint64_t>(set, 1);
    tensors_.push_back(std::move(tensor));
  }
  by_hash_.merge(hashes);
  return first;
}

void TensorTable::take_back(uint32_t first) {
  for (const Tensor& tensor : from(first)) by_hash_.erase(tensor.hash);
  tensors_.resize(first);
}

const Tensor* TensorTable::find_hash(uint64_t hash) const {
  const auto position = by_hash_.find(hash);
  return position == by_hash_.end() ? nullptr : &tensors_[position->second];
}

}  // namespace braid
