// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <span>

namespace braid {

using Sha256Digest = std::array<uint8_t, 32>;

// The key may be empty.
Sha256Digest hmac_sha256(std::span<const uint8_t> key, std::span<const uint8_t> message);

// In a time that depends on the sizes alone.
bool equal_in_constant_time(std::span<const uint8_t> a, std::span<const uint8_t> b);

}  // namespace braid
