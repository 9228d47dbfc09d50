// SPDX-License-Identifier: Apache-2.0
#include "net/flow_proof.h"

#include <string_view>

namespace braid {
namespace {

std::span<const uint8_t> bytes_of_label(std::string_view label) {
  return {reinterpret_cast<const uint8_t*>(label.data()), label.size()};
}

}  // namespace

FlowProof flow_proof(const Sha256Digest& proof_key, FlowProofOf side, uint16_t port,
                     std::span<const uint8_t> salts) {
  const std::string_view label =
      side == FlowProofOf::Connecting ? "braid flow, connecting" : "braid flow, listening";
  const std::array<uint8_t, 2> port_bytes{static_cast<uint8_t>(port >> 8),
                                          static_cast<uint8_t>(port)};
  return HmacSha256(proof_key).digest({bytes_of_label(label), port_bytes, salts});
}

std::span<uint8_t> FlowSalts::own(FlowProofOf side) {
  return std::span(bytes).subspan(side == FlowProofOf::Connecting ? 0 : kBytes, kBytes);
}

std::span<const uint8_t> FlowSalts::known_to(FlowProofOf side) const {
  return std::span(bytes).first(side == FlowProofOf::Connecting ? kBytes : 2 * kBytes);
}

Sha256Digest flow_record_key(const Sha256Digest& cipher_key, FlowProofOf side,
                             const FlowSalts& salts) {
  const std::string_view label =
      side == FlowProofOf::Connecting ? "braid records, connecting" : "braid records, listening";
  return HmacSha256(cipher_key).digest({bytes_of_label(label), salts.known_to(side)});
}

}  // namespace braid
