// SPDX-License-Identifier: Apache-2.0
#include "tensor_table.h"

#include <cstring>
#include <utility>

#include "messages/tensor_bytes.h"
#include "options.h"
#include "proto/update.h"

namespace braid::client {
namespace {

constexpr size_t kTensorNameBytesMax = 1023;
constexpr size_t kTensorsMax = 1u << 20;
constexpr size_t kCodecBytesMax = 256;  // longer ones are no codec's, and the daemon says so

Status parse_one(const braid_tensor_options& options, size_t index, Tensor& tensor) {
  const size_t length =
      options.name == nullptr ? 0 : ::strnlen(options.name, kTensorNameBytesMax + 1);
  if (length == 0 || length > kTensorNameBytesMax) {
    return make_status(StatusCode::InvalidArgument,
                       "name of tensor {} of the array has {} bytes; 1 to {} are possible", index,
                       length == 0 ? "no" : "more than 1023", kTensorNameBytesMax);
  }
  tensor.name = options.name;
  tensor.backward_order = options.backward_order;
  tensor.dynamic = options.dynamic != 0;
  tensor.planned = options.planned != 0;
  if (options.codec != nullptr)
    tensor.codec.assign(options.codec, ::strnlen(options.codec, kCodecBytesMax));
  if (options.state_slots > kStateSlotCount) {
    return make_status(StatusCode::InvalidArgument,
                       "state_slots of tensor '{}' is {}; 0 to {} are possible", tensor.name,
                       options.state_slots, kStateSlotCount);
  }
  tensor.state_slots = options.state_slots;
  if (tensor.dynamic && tensor.planned) {
    return make_status(StatusCode::InvalidArgument,
                       "tensor '{}' is both dynamic and planned; a plan needs registered counts",
                       tensor.name);
  }
  if (tensor.dynamic) return {};
  if (options.dtype >= kDataTypeCount) {
    return make_status(StatusCode::InvalidArgument,
                       "dtype of tensor '{}' is {}, which is no braid_dtype (0 to {})", tensor.name,
                       options.dtype, kDataTypeCount - 1);
  }
  tensor.dtype = static_cast<DataType>(options.dtype);
  tensor.count = options.count;
  return TensorBytes::check(tensor.name, tensor.dtype, tensor.count);
}

}  // namespace

Status TensorTable::parse(const braid_tensor_options* options, size_t count,
                          std::vector<Tensor>& tensors) const {
  if (options == nullptr || count == 0 || count > kTensorsMax - tensors_.size()) {
    return make_status(StatusCode::InvalidArgument,
                       "options and tensor_count name {} tensors; 1 to {} per job are possible",
                       count, kTensorsMax);
  }
  std::unordered_set<std::string> names;
  const char* bytes = reinterpret_cast<const char*>(options);
  for (size_t i = 0; i < count; ++i) {
    braid_tensor_options one{};
    // The caller's struct may be larger than ours, so its struct_size is the array's stride.
    BRAID_RETURN_IF_ERROR(
        read_options(bytes + i * options->struct_size, "braid_tensor_options", one));
    if (one.struct_size != options->struct_size) {
      return Status(StatusCode::InvalidArgument, "struct_size differs within the array of tensors");
    }
    Tensor tensor;
    BRAID_RETURN_IF_ERROR(parse_one(one, i, tensor));
    if (names_.contains(tensor.name) || !names.insert(tensor.name).second) {
      return make_status(StatusCode::AlreadyExists, "the tensor name '{}' is given twice",
                         tensor.name);
    }
    tensors.push_back(std::move(tensor));
  }
  return {};
}

void TensorTable::add(std::vector<Tensor> tensors) {
  for (Tensor& tensor : tensors) {
    names_.insert(tensor.name);
    tensors_.push_back(std::move(tensor));
  }
}

const Tensor* TensorTable::find(uint32_t handle) const {
  return handle < tensors_.size() ? &tensors_[handle] : nullptr;
}

}  // namespace braid::client
