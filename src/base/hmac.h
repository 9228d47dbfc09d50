// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <span>

#include <openssl/types.h>

namespace braid {

using Sha256Digest = std::array<uint8_t, 32>;

// The key may be empty.
Sha256Digest hmac_sha256(std::span<const uint8_t> key, std::span<const uint8_t> message);

// HMAC-SHA-256 of many messages with one key, which is prepared once.
class HmacSha256 {
 public:
  explicit HmacSha256(std::span<const uint8_t> key);
  // The digest of `parts`, one after the other.
  Sha256Digest digest(std::initializer_list<std::span<const uint8_t>> parts);

 private:
  struct Free {
    void operator()(EVP_MAC_CTX* context) const;
  };
  std::unique_ptr<EVP_MAC_CTX, Free> context_;
};

// In a time that depends on the sizes alone.
bool equal_in_constant_time(std::span<const uint8_t> a, std::span<const uint8_t> b);

}  // namespace braid
