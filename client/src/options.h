// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstring>

#include <braid.h>

#include "base/status.h"

namespace braid::client {

// The size of an options struct in the first braid.h: what was added since begins there. A field
// that a caller's shorter struct lacks is 0, so 0 is the default of every field that is added.
template <typename Options>
inline constexpr size_t kFirstBytes = 0;
template <>
inline constexpr size_t kFirstBytes<braid_job_options> = offsetof(braid_job_options, token);
template <>
inline constexpr size_t kFirstBytes<braid_tensor_options> = offsetof(braid_tensor_options, planned);
template <>
inline constexpr size_t kFirstBytes<braid_operation> = offsetof(braid_operation, input) +
                                                       sizeof(braid_operation::input);
template <>
inline constexpr size_t kFirstBytes<braid_device_buffers> = sizeof(braid_device_buffers);
template <>
inline constexpr size_t kFirstBytes<braid_update> = sizeof(braid_update);
template <>
inline constexpr size_t kFirstBytes<braid_message> = sizeof(braid_message);

// Reads an options struct that was compiled against a braid.h of another age: a shorter one lacks
// fields, and in a longer one everything that this library doesn't know must be left at 0.
template <typename Options>
Status read_options(const void* given, const char* type, Options& options) {
  static_assert(kFirstBytes<Options> != 0 && kFirstBytes<Options> <= sizeof(Options));
  if (given == nullptr) return make_status(StatusCode::InvalidArgument, "the {} are NULL", type);
  size_t size = 0;
  std::memcpy(&size, given, sizeof(size));
  constexpr size_t kSizeMax = 4096;  // far beyond what a struct may grow to: the field was not set
  if (size < kFirstBytes<Options> || size > kSizeMax) {
    return make_status(StatusCode::InvalidArgument,
                       "struct_size of {} is {}; set it to sizeof({}), which is {}", type, size,
                       type, sizeof(Options));
  }
  const char* bytes = static_cast<const char*>(given);
  for (size_t i = sizeof(Options); i < size; ++i) {
    if (bytes[i] != 0) {
      return make_status(StatusCode::InvalidArgument,
                         "{} uses fields that this libbraid ({}) does not know; upgrade libbraid",
                         type, BRAID_VERSION);
    }
  }
  options = {};
  std::memcpy(&options, given, std::min(size, sizeof(Options)));
  return {};
}

}  // namespace braid::client
