// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>

#include "base/hmac.h"
#include "base/peer.h"

namespace braid {

// What the two nodes of a link have in common and nobody else. It comes from the cluster key, so it
// never travels.
using LinkKey = Sha256Digest;

// `opener` has sent FlowOpen with `nonce` to `receiver`.
LinkKey make_link_key(std::span<const uint8_t> cluster_key, NodeId opener, NodeId receiver,
                      uint64_t nonce);

// What protects one generation of a flow. The token travels in every chunk, and tells nothing about
// the key, nor about what protects any other flow or generation. proto/SPEC.md has the bytes.
struct FlowKeys {
  // (io_loop, flow, generation): of the sender of data, as in FlowOffer.
  FlowKeys(const LinkKey& link, uint16_t io_loop, uint16_t flow, uint32_t generation);

  Sha256Digest proof_key;   // of a flow's connections; never travels
  Sha256Digest cipher_key;  // where transport.encryption is on; never travels
  uint64_t chunk_token;     // in each header on the flow
};

}  // namespace braid
