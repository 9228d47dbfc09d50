// SPDX-License-Identifier: Apache-2.0
#include "control/flow_keys.h"

#include <cstring>
#include <string_view>

namespace braid {
namespace {

template <typename Number>
std::span<const uint8_t> bytes_of(const Number& number) {
  return {reinterpret_cast<const uint8_t*>(&number), sizeof(number)};
}

std::span<const uint8_t> bytes_of(std::string_view text) {
  return {reinterpret_cast<const uint8_t*>(text.data()), text.size()};
}

}  // namespace

LinkKey make_link_key(std::span<const uint8_t> cluster_key, NodeId opener, NodeId receiver,
                      uint64_t nonce) {
  return HmacSha256(cluster_key)
      .digest({bytes_of(std::string_view("braid link")), bytes_of(opener), bytes_of(receiver),
               bytes_of(nonce)});
}

FlowKeys::FlowKeys(const LinkKey& link, uint16_t io_loop, uint16_t flow, uint32_t generation) {
  HmacSha256 hmac(link);
  const auto derive = [&](std::string_view label) {
    return hmac.digest({bytes_of(label), bytes_of(io_loop), bytes_of(flow), bytes_of(generation)});
  };
  proof_key = derive("braid flow proofs");
  cipher_key = derive("braid flow cipher");
  const Sha256Digest token = derive("braid flow chunks");
  std::memcpy(&chunk_token, token.data(), sizeof(chunk_token));
}

}  // namespace braid
