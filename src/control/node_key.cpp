// SPDX-License-Identifier: Apache-2.0
#include "control/node_key.h"

#include <cstring>

#include <openssl/evp.h>
#include <openssl/sha.h>

#include "base/assert.h"

namespace braid {
namespace {

struct FreeContext {
  void operator()(EVP_PKEY_CTX* context) const { EVP_PKEY_CTX_free(context); }
  void operator()(EVP_MD_CTX* context) const { EVP_MD_CTX_free(context); }
};

Pkey new_key(const char* type) {
  Pkey key(EVP_PKEY_Q_keygen(nullptr, nullptr, type));
  BRAID_ASSERT(key != nullptr, "OpenSSL must have Ed25519 and X25519");
  return key;
}

PublicKey public_part(const Pkey& key) {
  PublicKey bytes{};
  size_t size = bytes.size();
  const int done = EVP_PKEY_get_raw_public_key(key.get(), bytes.data(), &size);
  BRAID_ASSERT(done == 1 && size == bytes.size(), "both kinds of keys have 32 bytes");
  return bytes;
}

Pkey from_public(int type, const PublicKey& key) {
  return Pkey(EVP_PKEY_new_raw_public_key(type, nullptr, key.data(), key.size()));
}

}  // namespace

void FreePkey::operator()(EVP_PKEY* key) const { EVP_PKEY_free(key); }

NodeKey::NodeKey() : key_(new_key("ED25519")), public_key_(public_part(key_)) {}

NodeSignature NodeKey::sign(std::span<const uint8_t> message) const {
  const std::unique_ptr<EVP_MD_CTX, FreeContext> context(EVP_MD_CTX_new());
  NodeSignature signature{};
  size_t size = signature.size();
  const bool is_done =
      EVP_DigestSignInit(context.get(), nullptr, nullptr, nullptr, key_.get()) == 1 &&
      EVP_DigestSign(context.get(), signature.data(), &size, message.data(), message.size()) == 1;
  BRAID_ASSERT(is_done && size == signature.size(), "a key of our own signs anything");
  return signature;
}

NodeId NodeKey::id_of(const PublicKey& key) {
  std::array<uint8_t, SHA256_DIGEST_LENGTH> digest{};
  SHA256(key.data(), key.size(), digest.data());
  NodeId id = 0;
  std::memcpy(&id, digest.data(), sizeof(id));
  return id;
}

bool NodeKey::verify(const PublicKey& key, std::span<const uint8_t> message,
                     std::span<const uint8_t> signature) {
  const Pkey signer = from_public(EVP_PKEY_ED25519, key);
  const std::unique_ptr<EVP_MD_CTX, FreeContext> context(EVP_MD_CTX_new());
  return signer != nullptr &&
         EVP_DigestVerifyInit(context.get(), nullptr, nullptr, nullptr, signer.get()) == 1 &&
         EVP_DigestVerify(context.get(), signature.data(), signature.size(), message.data(),
                          message.size()) == 1;
}

KeyExchange::KeyExchange() : key_(new_key("X25519")), public_key_(public_part(key_)) {}

std::optional<SharedSecret> KeyExchange::agree(const PublicKey& other) const {
  const Pkey theirs = from_public(EVP_PKEY_X25519, other);
  const std::unique_ptr<EVP_PKEY_CTX, FreeContext> context(EVP_PKEY_CTX_new(key_.get(), nullptr));
  SharedSecret secret{};
  size_t size = secret.size();
  // OpenSSL refuses a secret of zeros, which is what keys of small order lead to.
  const bool is_done =
      theirs != nullptr && context != nullptr && EVP_PKEY_derive_init(context.get()) == 1 &&
      EVP_PKEY_derive_set_peer(context.get(), theirs.get()) == 1 &&
      EVP_PKEY_derive(context.get(), secret.data(), &size) == 1 && size == secret.size();
  if (!is_done) return std::nullopt;
  return secret;
}

}  // namespace braid
