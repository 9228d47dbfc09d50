// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>

#include <openssl/types.h>

#include "base/peer.h"

namespace braid {

struct FreePkey {
  void operator()(EVP_PKEY* key) const;
};
using Pkey = std::unique_ptr<EVP_PKEY, FreePkey>;

using PublicKey = std::array<uint8_t, 32>;
using NodeSignature = std::array<uint8_t, 64>;
using SharedSecret = std::array<uint8_t, 32>;

// What a daemon's identity rests on: an Ed25519 key pair, new at each start and never stored. The
// node id is taken from the public key, so nobody else can prove to be that node, whatever other
// keys he has.
class NodeKey {
 public:
  NodeKey();

  NodeId id() const { return id_of(public_key_); }
  const PublicKey& public_key() const { return public_key_; }
  NodeSignature sign(std::span<const uint8_t> message) const;

  // The first eight bytes of the key's SHA-256, little-endian.
  static NodeId id_of(const PublicKey& key);
  static bool verify(const PublicKey& key, std::span<const uint8_t> message,
                     std::span<const uint8_t> signature);

 private:
  Pkey key_;
  PublicKey public_key_{};
};

// X25519: two that have given each other public keys share a secret that nobody else can work out,
// even if he has heard everything.
class KeyExchange {
 public:
  KeyExchange();

  const PublicKey& public_key() const { return public_key_; }
  // Nothing: no proper key, but one that would make the secret a known one.
  std::optional<SharedSecret> agree(const PublicKey& other) const;

 private:
  Pkey key_;
  PublicKey public_key_{};
};

}  // namespace braid
