// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace braid {

// The norm of finite numbers; the largest float if it would leave float32's range. Summed in
// float64, with one accumulator for each place in a row of 16.
float euclidean_norm(const float* values, uint64_t count);

}  // namespace braid
