// SPDX-License-Identifier: Apache-2.0
#include "base/siphash.h"

#include <numeric>
#include <set>
#include <vector>

#include <gtest/gtest.h>

namespace braid {
namespace {

// The key of the published test vectors: bytes 0, 1, …, 15.
constexpr SipKey kKey = {0x0706050403020100ULL, 0x0f0e0d0c0b0a0908ULL};

std::vector<uint8_t> count_up(size_t bytes) {
  std::vector<uint8_t> result(bytes);
  std::iota(result.begin(), result.end(), 0);
  return result;
}

TEST(SipHashTest, GivesThePublishedHashes) {
  EXPECT_EQ(siphash24(kKey, count_up(0)), 0x726fdb47dd0e0e31ULL);
  EXPECT_EQ(siphash24(kKey, count_up(1)), 0x74f839c593dc67fdULL);
  EXPECT_EQ(siphash24(kKey, count_up(8)), 0x93f5f5799a932462ULL);
  EXPECT_EQ(siphash24(kKey, count_up(15)), 0xa129ca6149be45e5ULL);
}

TEST(SipHashTest, EveryBitOfKeyAndInputCounts) {
  const std::vector<uint8_t> input = count_up(11);
  std::set<uint64_t> hashes = {siphash24(kKey, input)};
  for (size_t bit = 0; bit < 128; ++bit) {
    SipKey key = kKey;
    key[bit / 64] ^= uint64_t{1} << bit % 64;
    hashes.insert(siphash24(key, input));
  }
  for (size_t bit = 0; bit < 8 * input.size(); ++bit) {
    std::vector<uint8_t> other = input;
    other[bit / 8] = static_cast<uint8_t>(other[bit / 8] ^ 1u << bit % 8);
    hashes.insert(siphash24(kKey, other));
  }
  EXPECT_EQ(hashes.size(), 1 + 128 + 8 * input.size());
}

}  // namespace
}  // namespace braid
