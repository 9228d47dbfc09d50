// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>

namespace braid {

// The counts of IntegerSums. What was once not finite stays so; nothing else is looked at, so
// counts of a peer may be anything: they wrap around.

void count_signs(const uint8_t* signs, std::span<int8_t> counts);      // see sign_kernels.h
void count_ternary(const uint8_t* encoded, std::span<int8_t> counts);  // see ternary_kernels.h
void spoil_counts(std::span<int8_t> counts);                           // none is finite

}  // namespace braid
