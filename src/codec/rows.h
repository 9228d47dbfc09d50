// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace braid {

// A row: what kernels work on at a time, whatever the width of their vectors.
inline constexpr uint64_t kRowElements = 16;
// Gradient, memory and the encoded bytes of a slice fit the first-level cache together.
inline constexpr uint64_t kSliceElements = 2048;

}  // namespace braid
