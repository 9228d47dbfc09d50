// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "base/hmac.h"

namespace braid {

// How both ends of a flow's TCP connection prove themselves before either hears another word. The
// proofs are made with a key of this one flow that travels nowhere (control/flow_keys.h). They
// differ from each other and from those for other ports, and each lets one connection in, so that
// who hears one can use it nowhere.
inline constexpr size_t kFlowProofBytes = 32;
using FlowProof = std::array<uint8_t, kFlowProofBytes>;

enum class FlowProofOf : uint8_t { Connecting, Listening };
// What that side of a connection to `port` says: HMAC-SHA-256. `salts`: FlowSalts::known_to() it,
// on an encrypted connection.
FlowProof flow_proof(const Sha256Digest& proof_key, FlowProofOf side, uint16_t port,
                     std::span<const uint8_t> salts = {});

// Random bytes that both sides of an encrypted connection say with their proofs, which cover them:
// no two connections encrypt with the same key.
struct FlowSalts {
  static constexpr size_t kBytes = 16;  // of each side

  std::array<uint8_t, 2 * kBytes> bytes{};  // the connecting side's first

  std::span<uint8_t> own(FlowProofOf side);
  // When it says its proof. The connecting side speaks, and sends, before the other one has.
  std::span<const uint8_t> known_to(FlowProofOf side) const;
};

// The key of the RecordCipher for what that side sends.
Sha256Digest flow_record_key(const Sha256Digest& cipher_key, FlowProofOf side,
                             const FlowSalts& salts);

}  // namespace braid
