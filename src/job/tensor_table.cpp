// SPDX-License-Identifier: Apache-2.0
#include "job/tensor_table.h"

namespace braid {

Result<uint32_t> TensorTable::add(const proto::RegisterTensors& message, const JobHash& job) {
  std::vector<Tensor> added;
  std::unordered_map<uint64_t, uint32_t> hashes;
  uint64_t set = 0;
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
    tensor.hash = job.of_name(*tensor.name);
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
      set = job.of(JobHash::Set,
                   {set, tensor.hash, tensor.count, tensor.backward_order, description->dtype()});
    }
    const auto handle = static_cast<uint32_t>(tensors_.size() + added.size());
    const Tensor* same = find_hash(tensor.hash);
    if (const auto position = hashes.find(tensor.hash); position != hashes.end())
      same = &added[position->second - tensors_.size()];
    if (same != nullptr) {
      return make_status(
          StatusCode::AlreadyExists, "tensor '{}' is registered already{}", *tensor.name,
          *same->name == *tensor.name
              ? std::string()
              : fmt::format(", as '{}': their names have the same hash in this job", *same->name));
    }
    hashes.emplace(tensor.hash, handle);
    added.push_back(std::move(tensor));
  }
  const auto first = static_cast<uint32_t>(tensors_.size());
  for (Tensor& tensor : added) {
    if (tensor.plan_set != 0) tensor.plan_set = set;
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
