// SPDX-License-Identifier: Apache-2.0
#include "base/hmac.h"

#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace braid {
namespace {

std::string hex(const Sha256Digest& digest) {
  std::string text;
  for (uint8_t byte : digest) {
    text += "0123456789abcdef"[byte >> 4];
    text += "0123456789abcdef"[byte & 15];
  }
  return text;
}

std::vector<uint8_t> bytes(const std::string& text) { return {text.begin(), text.end()}; }

TEST(Hmac, GivesTheValuesOfRfc4231) {
  EXPECT_EQ(hex(hmac_sha256(std::vector<uint8_t>(20, 0x0b), bytes("Hi There"))),
            "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7");
  EXPECT_EQ(hex(hmac_sha256(bytes("Jefe"), bytes("what do ya want for nothing?"))),
            "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
}

TEST(Hmac, TakesAnEmptyKey) {
  hmac_sha256(bytes("Jefe"), bytes("x"));  // its key must not be used again
  EXPECT_EQ(hex(hmac_sha256({}, {})),
            "b613679a0814d9ec772f95d778c35fc5ff1697c493715653c6c712144292c5ad");
}

TEST(Hmac, ComparesWholeDigests) {
  const Sha256Digest a = hmac_sha256(bytes("a"), {});
  Sha256Digest b = a;
  EXPECT_TRUE(equal_in_constant_time(a, b));
  b[31] ^= 1;
  EXPECT_FALSE(equal_in_constant_time(a, b));
  EXPECT_FALSE(equal_in_constant_time(a, std::span(a).first(31)));
  EXPECT_FALSE(equal_in_constant_time(a, {}));
}

}  // namespace
}  // namespace braid
