// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string_view>

#include "base/checked.h"
#include "base/status.h"
#include "proto/types.h"

namespace braid {

// The bytes of tensors, as a trainer or a peer gives their counts.
class TensorBytes {
 public:
  // InvalidArgument names the tensor and the limit: it has more than kTensorBytesMax.
  static Status check(std::string_view name, DataType dtype, uint64_t count) {
    if ((CheckedNumber(count) * element_bytes(dtype)).is_at_most(kTensorBytesMax))
      return Status::ok();
    return make_status(StatusCode::InvalidArgument,
                       "tensor '{}' has {} elements of {}; a tensor has {} bytes at most", name,
                       count, to_string(dtype), kTensorBytesMax);
  }

  // One more tensor of a set. InvalidArgument: as above, or the set has more than kSetBytesMax;
  // then nothing was added.
  Status add(std::string_view name, DataType dtype, uint64_t count) {
    BRAID_RETURN_IF_ERROR(check(name, dtype, count));
    const uint64_t with_it = bytes_ + count * element_bytes(dtype);
    if (with_it > kSetBytesMax) {
      return make_status(StatusCode::InvalidArgument,
                         "with tensor '{}' ({} elements of {}) the planned tensors of one "
                         "registration have {} bytes; they have {} at most",
                         name, count, to_string(dtype), with_it, kSetBytesMax);
    }
    bytes_ = with_it;
    return Status::ok();
  }
  uint64_t bytes() const { return bytes_; }

 private:
  uint64_t bytes_ = 0;  // kSetBytesMax at most
};

}  // namespace braid
