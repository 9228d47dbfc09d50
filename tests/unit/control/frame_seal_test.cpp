// SPDX-License-Identifier: Apache-2.0
#include "control/frame_seal.h"

#include <string_view>
#include <vector>

#include <gtest/gtest.h>

namespace braid {
namespace {

Sha256Digest key_of(uint8_t byte) {
  Sha256Digest key{};
  key.fill(byte);
  return key;
}

std::vector<uint8_t> bytes_of(std::string_view text) { return {text.begin(), text.end()}; }

// As the frame reader hands it on: without its length.
std::vector<uint8_t> frame(FrameSeal& seal, const FrameNumbers& numbers, std::string_view text) {
  const auto message = bytes_of(text);
  const FrameSeal::Sealed sealed = seal.seal(numbers, message);
  std::vector<uint8_t> bytes(sealed.head.begin() + kControlFrameHeaderBytes, sealed.head.end());
  bytes.insert(bytes.end(), message.begin(), message.end());
  bytes.insert(bytes.end(), sealed.tag.begin(), sealed.tag.end());
  return bytes;
}

TEST(FrameSeal, OpensWhatTheOtherSideHasSealed) {
  FrameSeal sending(key_of(1));
  FrameSeal receiving(key_of(1));
  for (uint64_t i = 1; i < 100; ++i) {
    const std::string text(i, 'x');
    const auto bytes = frame(sending, {i, 2 * i}, text);
    const auto opened = receiving.open(bytes).value();
    EXPECT_EQ(opened.numbers.sequence, i);
    EXPECT_EQ(opened.numbers.acknowledged, 2 * i);
    EXPECT_TRUE(std::equal(opened.message.begin(), opened.message.end(), text.begin(), text.end()));
  }
}

// The bytes of proto/SPEC.md, put together a second time.
TEST(FrameSeal, TagsWhatTheSpecificationSays) {
  FrameSeal seal(key_of(9));
  seal.seal({1, 0}, bytes_of("before"));
  const FrameSeal::Sealed sealed = seal.seal({0x0102, 0x0304}, bytes_of("message"));
  std::vector<uint8_t> message = {1, 0, 0, 0, 0, 0, 0, 0};  // the second frame
  for (const uint8_t byte : {16 + 7 + 16, 0, 0, 0}) message.push_back(byte);
  for (const uint8_t byte : {2, 1, 0, 0, 0, 0, 0, 0, 4, 3, 0, 0, 0, 0, 0, 0})
    message.push_back(byte);
  for (const uint8_t byte : bytes_of("message")) message.push_back(byte);
  const Sha256Digest expected = hmac_sha256(key_of(9), message);
  EXPECT_TRUE(std::equal(sealed.tag.begin(), sealed.tag.end(), expected.begin()));
}

TEST(FrameSeal, RefusesEveryChangedByte) {
  FrameSeal sending(key_of(1));
  const auto good = frame(sending, {1, 0}, "a message of some bytes");
  for (size_t place = 0; place < good.size(); ++place) {
    auto changed = good;
    changed[place] ^= 0x10;
    FrameSeal receiving(key_of(1));
    EXPECT_EQ(receiving.open(changed).status().code(), StatusCode::PermissionDenied) << place;
  }
  FrameSeal receiving(key_of(1));
  EXPECT_TRUE(receiving.open(good).is_ok());
}

TEST(FrameSeal, RefusesFramesOfAnotherKeyOrPlace) {
  FrameSeal sending(key_of(1));
  const auto first = frame(sending, {1, 0}, "first");
  const auto second = frame(sending, {2, 0}, "second");
  FrameSeal other_key(key_of(2));
  EXPECT_FALSE(other_key.open(first).is_ok());
  FrameSeal left_out(key_of(1));
  EXPECT_FALSE(left_out.open(second).is_ok());
  FrameSeal repeated(key_of(1));
  EXPECT_TRUE(repeated.open(first).is_ok());
  EXPECT_FALSE(repeated.open(first).is_ok());
}

TEST(FrameSeal, RefusesFramesWithoutAMessage) {
  for (const size_t size : {0u, 1u, 16u, 31u, 32u}) {
    FrameSeal receiving(key_of(1));
    EXPECT_EQ(receiving.open(std::vector<uint8_t>(size, 0)).status().code(), StatusCode::Protocol);
  }
}

}  // namespace
}  // namespace braid
