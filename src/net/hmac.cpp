// SPDX-License-Identifier: Apache-2.0
#include "net/hmac.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>

#include "base/assert.h"

namespace braid {

Sha256Digest hmac_sha256(std::span<const uint8_t> key, std::span<const uint8_t> message) {
  static constexpr uint8_t kNoKey = 0;  // OpenSSL takes a null key for "the one before"
  Sha256Digest digest{};
  unsigned int bytes = 0;
  const auto* result =
      HMAC(EVP_sha256(), key.empty() ? &kNoKey : key.data(), static_cast<int>(key.size()),
           message.data(), message.size(), digest.data(), &bytes);
  BRAID_ASSERT(result != nullptr && bytes == digest.size(), "OpenSSL must have HMAC-SHA-256");
  return digest;
}

bool equal_in_constant_time(std::span<const uint8_t> a, std::span<const uint8_t> b) {
  return a.size() == b.size() && CRYPTO_memcmp(a.data(), b.data(), a.size()) == 0;
}

}  // namespace braid
