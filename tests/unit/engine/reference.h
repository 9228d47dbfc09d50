// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "proto/types.h"

namespace braid::test {

// Scalar arithmetic, written apart from the kernels: 16-bit floats are rounded by dividing by their
// spacing.
float half_to_float(uint16_t bits);
uint16_t float_to_half(float value);
float bfloat16_to_float(uint16_t bits);
uint16_t float_to_bfloat16(float value);

// The element at `index` as a number, for tolerances and messages.
double element_as_double(DataType dtype, const uint8_t* data, uint64_t index);
void store_double(DataType dtype, double value, uint8_t* data, uint64_t index);

// What reduce_all and divide_all promise.
std::vector<uint8_t> fold_reference(DataType dtype, Reduction reduction,
                                    const std::vector<const uint8_t*>& operands, uint64_t count);
void divide_reference(DataType dtype, uint8_t* data, uint64_t count, uint32_t divisor);

// Equal bit by bit, but any NaN equals any other.
bool same_elements(DataType dtype, const uint8_t* a, const uint8_t* b, uint64_t count);

inline constexpr DataType kAllDataTypes[] = {
    DataType::Float32, DataType::Float64, DataType::Float16, DataType::BFloat16,
    DataType::Int32,   DataType::Int64,   DataType::Uint8};
inline constexpr Reduction kAllReductions[] = {Reduction::Sum, Reduction::Average, Reduction::Min,
                                               Reduction::Max, Reduction::Product};

}  // namespace braid::test
