// SPDX-License-Identifier: Apache-2.0
// What ranks give and get: small whole numbers, which every type holds and adds up exactly.
#pragma once

#include <cstdint>
#include <vector>

#include "program.h"

namespace braid::device_programs {

size_t bytes_of(braid_dtype dtype);
// Element `index` of what a rank of a group gives in a step.
uint64_t value_of(const Program& program, size_t step, uint32_t rank, uint64_t index);
void encode(uint64_t value, braid_dtype dtype, uint8_t* to);

// Elements that a rank gives and gets.
uint64_t input_count(const Program& program, size_t step, uint32_t rank);
std::vector<uint8_t> input_of(const Program& program, size_t step, uint32_t rank);
std::vector<uint8_t> result_of(const Program& program, size_t step, uint32_t rank);

}  // namespace braid::device_programs
