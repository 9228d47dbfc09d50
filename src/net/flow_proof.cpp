// SPDX-License-Identifier: Apache-2.0
#include "net/flow_proof.h"

#include <string_view>

namespace braid {

FlowProof flow_proof(const Sha256Digest& proof_key, FlowProofOf side, uint16_t port) {
  const std::string_view label =
      side == FlowProofOf::Connecting ? "braid flow, connecting" : "braid flow, listening";
  const std::array<uint8_t, 2> port_bytes{static_cast<uint8_t>(port >> 8),
                                          static_cast<uint8_t>(port)};
  return HmacSha256(proof_key).digest(
      {{reinterpret_cast<const uint8_t*>(label.data()), label.size()}, port_bytes});
}

}  // namespace braid
