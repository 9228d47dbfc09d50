// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "base/hmac.h"

namespace braid {

// How both ends of a flow's TCP connection prove themselves before either hears another word. The
// proofs are made with a key of this one flow that travels nowhere (control/flow_keys.h). They
// differ from each other and from those for other ports, and each lets one connection in, so that
// who hears one can use it nowhere.
inline constexpr size_t kFlowProofBytes = 32;
using FlowProof = std::array<uint8_t, kFlowProofBytes>;

enum class FlowProofOf : uint8_t { Connecting, Listening };
// What that side of a connection to `port` says: HMAC-SHA-256.
FlowProof flow_proof(const Sha256Digest& proof_key, FlowProofOf side, uint16_t port);

}  // namespace braid
