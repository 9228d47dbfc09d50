// SPDX-License-Identifier: Apache-2.0
#include "tensor_table.h"

#include <cstring>
#include <iterator>
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
  if (options == nullptr || count == 0 || count > kTensorsMax - size()) {
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
  for (const Tensor& tensor : tensors) names_.insert(tensor.name);
  const uint32_t first = next_handle_;
  next_handle_ += static_cast<uint32_t>(tensors.size());
  registrations_[first] = std::move(tensors);
}

const std::vector<Tensor>* TensorTable::registration_of(uint32_t handle, uint32_t& place) const {
  const auto after = registrations_.upper_bound(handle);
  if (after == registrations_.begin()) return nullptr;
  const auto found = std::prev(after);
  place = handle - found->first;
  return place < found->second.size() ? &found->second : nullptr;
}

const Tensor* TensorTable::find(uint32_t handle) const {
  uint32_t place = 0;
  const std::vector<Tensor>* registration = registration_of(handle, place);
  return registration == nullptr ? nullptr : &(*registration)[place];
}

Tensor& TensorTable::at(uint32_t handle) {
  const auto registration = std::prev(registrations_.upper_bound(handle));
  return registration->second.at(handle - registration->first);
}

Status TensorTable::check_registration(const uint32_t* handles, size_t count) const {
  if (handles == nullptr || count == 0)
    return Status(StatusCode::InvalidArgument, "tensors is NULL or has no handles");
  uint32_t place = 0;
  const std::vector<Tensor>* registration = registration_of(handles[0], place);
  if (registration == nullptr) {
    return make_status(StatusCode::NotFound,
                       "tensor handle {} is unknown: it was unregistered, or never given out",
                       handles[0]);
  }
  bool is_all = place == 0 && registration->size() == count;
  for (size_t i = 0; is_all && i < count; ++i) is_all = handles[i] == handles[0] + i;
  if (is_all) return {};
  return make_status(StatusCode::InvalidArgument,
                     "{} handles from {} on are not all tensors of one braid_register, which go "
                     "together: '{}' was registered among {}",
                     count, handles[0], (*registration)[place].name, registration->size());
}

void TensorTable::forget_names(const Registration& registration) {
  for (const Tensor& tensor : registration.mapped()) names_.erase(tensor.name);
}

}  // namespace braid::client
