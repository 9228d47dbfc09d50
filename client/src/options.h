// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstring>

#include "error.h"

namespace braid::client {

// Reads an options struct that was compiled against a braid.h of another age. `first_bytes`: its
// size in the first version; what a shorter one than today's lacks is 0. In a longer one everything
// that this library doesn't know must be left at 0.
template <typename Options>
Error read_options(const void* given, const char* type, Options& options,
                   size_t first_bytes = sizeof(Options)) {
  if (given == nullptr) return make_error(BRAID_ERROR_INVALID_ARGUMENT, "the ", type, " are NULL");
  size_t size = 0;
  std::memcpy(&size, given, sizeof(size));
  constexpr size_t kSizeMax = 4096;  // far beyond what a struct may grow to: the field was not set
  if (size < first_bytes || size > kSizeMax) {
    return make_error(BRAID_ERROR_INVALID_ARGUMENT, "struct_size of ", type, " is ", size,
                      "; set it to sizeof(", type, "), which is ", sizeof(Options));
  }
  const char* bytes = static_cast<const char*>(given);
  for (size_t i = sizeof(Options); i < size; ++i) {
    if (bytes[i] != 0) {
      return make_error(BRAID_ERROR_INVALID_ARGUMENT, type, " uses fields that this libbraid (",
                        BRAID_VERSION, ") does not know; upgrade libbraid");
    }
  }
  options = {};
  std::memcpy(&options, given, std::min(size, sizeof(Options)));
  return {};
}

}  // namespace braid::client
