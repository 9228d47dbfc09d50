// SPDX-License-Identifier: Apache-2.0
#include "tensor_table.h"

#include <cstring>
#include <utility>

#include "base/checked.h"
#include "options.h"

namespace braid::client {
namespace {

constexpr size_t kTensorNameBytesMax = 1023;
constexpr size_t kTensorsMax = 1u << 20;

Error parse_one(const braid_tensor_options& options, size_t index, Tensor& tensor) {
  const size_t length =
      options.name == nullptr ? 0 : ::strnlen(options.name, kTensorNameBytesMax + 1);
  if (length == 0 || length > kTensorNameBytesMax) {
    return make_error(BRAID_ERROR_INVALID_ARGUMENT, "name of tensor ", index, " of the array has ",
                      length == 0 ? "no" : "more than 1023", " bytes; 1 to ", kTensorNameBytesMax,
                      " are possible");
  }
  tensor.name = options.name;
  tensor.backward_order = options.backward_order;
  tensor.dynamic = options.dynamic != 0;
  tensor.planned = options.planned != 0;
  if (tensor.dynamic && tensor.planned) {
    return make_error(BRAID_ERROR_INVALID_ARGUMENT, "tensor '", tensor.name,
                      "' is both dynamic and planned; a plan needs registered counts");
  }
  if (tensor.dynamic) return {};
  if (options.dtype >= kDataTypeCount) {
    return make_error(BRAID_ERROR_INVALID_ARGUMENT, "dtype of tensor '", tensor.name, "' is ",
                      options.dtype, ", which is no braid_dtype (0 to ", kDataTypeCount - 1, ")");
  }
  tensor.dtype = static_cast<DataType>(options.dtype);
  tensor.count = options.count;
  if (!checked_multiply<uint64_t>(options.count, element_bytes(tensor.dtype))) {
    return make_error(BRAID_ERROR_INVALID_ARGUMENT, "count of tensor '", tensor.name, "' is ",
                      options.count, "; its bytes must fit into 64 bits");
  }
  return {};
}

}  // namespace

Error TensorTable::parse(const braid_tensor_options* options, size_t count,
                         std::vector<Tensor>& tensors) const {
  if (options == nullptr || count == 0 || count > kTensorsMax - tensors_.size()) {
    return make_error(BRAID_ERROR_INVALID_ARGUMENT, "options and tensor_count name ", count,
                      " tensors; 1 to ", kTensorsMax, " per job are possible");
  }
  std::unordered_set<std::string> names;
  const char* bytes = reinterpret_cast<const char*>(options);
  for (size_t i = 0; i < count; ++i) {
    braid_tensor_options one{};
    // The caller's struct may be larger than ours, so its struct_size is the array's stride.
    if (Error error = read_options(bytes + i * options->struct_size, "braid_tensor_options", one);
        !error) {
      return error;
    }
    if (one.struct_size != options->struct_size) {
      return make_error(BRAID_ERROR_INVALID_ARGUMENT,
                        "struct_size differs within the array of tensors");
    }
    Tensor tensor;
    if (Error error = parse_one(one, i, tensor); !error) return error;
    if (names_.contains(tensor.name) || !names.insert(tensor.name).second) {
      return make_error(BRAID_ERROR_ALREADY_EXISTS, "the tensor name '", tensor.name,
                        "' is given twice");
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
