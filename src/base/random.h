// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>

namespace braid {

// Unpredictable bytes from the kernel: identities, secrets and challenges.
void fill_random(std::span<uint8_t> bytes);
uint64_t random_u64();  // never 0

}  // namespace braid
