// SPDX-License-Identifier: Apache-2.0
#include "control/flow_keys.h"

#include <set>
#include <vector>

#include <gtest/gtest.h>

namespace braid {
namespace {

const std::vector<uint8_t> kClusterKey(32, 7);
const LinkKey kLink = make_link_key(kClusterKey, 1, 2, 3);

TEST(FlowKeys, BothEndsComeToTheSame) {
  const FlowKeys one(kLink, 0, 5, 9);
  const FlowKeys other(make_link_key(kClusterKey, 1, 2, 3), 0, 5, 9);
  EXPECT_EQ(one.proof_key, other.proof_key);
  EXPECT_EQ(one.cipher_key, other.cipher_key);
  EXPECT_EQ(one.chunk_token, other.chunk_token);
}

TEST(FlowKeys, EachGenerationAndFlowHasItsOwn) {
  std::set<Sha256Digest> keys;
  std::set<uint64_t> tokens;
  for (uint16_t io_loop = 0; io_loop < 3; ++io_loop) {
    for (uint16_t flow = 0; flow < 3; ++flow) {
      for (uint32_t generation = 1; generation < 4; ++generation) {
        const FlowKeys of_this(kLink, io_loop, flow, generation);
        keys.insert(of_this.proof_key);
        keys.insert(of_this.cipher_key);
        tokens.insert(of_this.chunk_token);
      }
    }
  }
  EXPECT_EQ(keys.size(), 54u);
  EXPECT_EQ(tokens.size(), 27u);
}

TEST(FlowKeys, AnotherClusterKeyNodeDirectionOrOpeningHasOthers) {
  std::set<LinkKey> links{kLink};
  links.insert(make_link_key(std::vector<uint8_t>(32, 8), 1, 2, 3));
  links.insert(make_link_key(kClusterKey, 2, 1, 3));
  links.insert(make_link_key(kClusterKey, 1, 4, 3));
  links.insert(make_link_key(kClusterKey, 1, 2, 4));
  EXPECT_EQ(links.size(), 5u);
}

}  // namespace
}  // namespace braid
