// SPDX-License-Identifier: Apache-2.0
#include "base/hmac.h"

#include <openssl/core_names.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/params.h>

#include "base/assert.h"

namespace braid {
namespace {

constexpr uint8_t kNoKey = 0;  // OpenSSL takes a null key for "the one before"

}  // namespace

Sha256Digest hmac_sha256(std::span<const uint8_t> key, std::span<const uint8_t> message) {
  Sha256Digest digest{};
  unsigned int bytes = 0;
  const auto* result =
      HMAC(EVP_sha256(), key.empty() ? &kNoKey : key.data(), static_cast<int>(key.size()),
           message.data(), message.size(), digest.data(), &bytes);
  BRAID_ASSERT(result != nullptr && bytes == digest.size(), "OpenSSL must have HMAC-SHA-256");
  return digest;
}

void HmacSha256::Free::operator()(EVP_MAC_CTX* context) const { EVP_MAC_CTX_free(context); }

HmacSha256::HmacSha256(std::span<const uint8_t> key) {
  EVP_MAC* hmac = EVP_MAC_fetch(nullptr, "HMAC", nullptr);
  context_.reset(hmac == nullptr ? nullptr : EVP_MAC_CTX_new(hmac));
  EVP_MAC_free(hmac);
  char sha256[] = "SHA256";
  const OSSL_PARAM parameters[] = {
      OSSL_PARAM_construct_utf8_string(OSSL_MAC_PARAM_DIGEST, sha256, 0),
      OSSL_PARAM_construct_end()};
  const bool is_ready =
      context_ != nullptr &&
      EVP_MAC_init(context_.get(), key.empty() ? &kNoKey : key.data(), key.size(), parameters) == 1;
  BRAID_ASSERT(is_ready, "OpenSSL must have HMAC-SHA-256");
}

Sha256Digest HmacSha256::digest(std::initializer_list<std::span<const uint8_t>> parts) {
  bool is_done = EVP_MAC_init(context_.get(), nullptr, 0, nullptr) == 1;
  for (const auto& part : parts)
    is_done = is_done && EVP_MAC_update(context_.get(), part.data(), part.size()) == 1;
  Sha256Digest digest{};
  size_t bytes = 0;
  is_done = is_done && EVP_MAC_final(context_.get(), digest.data(), &bytes, digest.size()) == 1;
  BRAID_ASSERT(is_done && bytes == digest.size(), "HMAC-SHA-256 of bytes in memory cannot fail");
  return digest;
}

bool equal_in_constant_time(std::span<const uint8_t> a, std::span<const uint8_t> b) {
  return a.size() == b.size() && CRYPTO_memcmp(a.data(), b.data(), a.size()) == 0;
}

}  // namespace braid
