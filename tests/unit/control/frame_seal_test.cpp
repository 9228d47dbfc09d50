// SPDX-License-Identifier: Apache-2.0
#include "control/frame_seal.h"

#include <algorithm>
#include <string>
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
  const FrameSeal::Sealed sealed = seal.seal(numbers, message).value();
  std::vector<uint8_t> bytes(sealed.head.begin() + kControlFrameHeaderBytes, sealed.head.end());
  bytes.insert(bytes.end(), sealed.message.begin(), sealed.message.end());
  bytes.insert(bytes.end(), sealed.tag.begin(), sealed.tag.end());
  return bytes;
}

class FrameSealTest : public ::testing::TestWithParam<FrameProtection> {
 protected:
  static FrameSeal seal_of(uint8_t key) { return {key_of(key), GetParam()}; }
};

INSTANTIATE_TEST_SUITE_P(Both, FrameSealTest,
                         ::testing::Values(FrameProtection::Authenticated,
                                           FrameProtection::Encrypted),
                         [](const auto& test) {
                           return test.param == FrameProtection::Encrypted ? "Encrypted"
                                                                           : "Authenticated";
                         });

TEST_P(FrameSealTest, OpensWhatTheOtherSideHasSealed) {
  FrameSeal sending = seal_of(1);
  FrameSeal receiving = seal_of(1);
  for (uint64_t i = 1; i < 100; ++i) {
    const std::string text(i, 'x');
    auto bytes = frame(sending, {i, 2 * i}, text);
    const auto opened = receiving.open(bytes).value();
    EXPECT_EQ(opened.numbers.sequence, i);
    EXPECT_EQ(opened.numbers.acknowledged, 2 * i);
    EXPECT_TRUE(std::equal(opened.message.begin(), opened.message.end(), text.begin(), text.end()));
  }
}

// The bytes of proto/SPEC.md, put together a second time.
TEST(FrameSeal, TagsWhatTheSpecificationSays) {
  FrameSeal seal(key_of(9), FrameProtection::Authenticated);
  ASSERT_TRUE(seal.seal({1, 0}, bytes_of("before")));
  const FrameSeal::Sealed sealed = seal.seal({0x0102, 0x0304}, bytes_of("message")).value();
  std::vector<uint8_t> message = {1, 0, 0, 0, 0, 0, 0, 0};  // the second frame
  for (const uint8_t byte : {16 + 7 + 16, 0, 0, 0}) message.push_back(byte);
  for (const uint8_t byte : {2, 1, 0, 0, 0, 0, 0, 0, 4, 3, 0, 0, 0, 0, 0, 0})
    message.push_back(byte);
  for (const uint8_t byte : bytes_of("message")) message.push_back(byte);
  const Sha256Digest expected = hmac_sha256(key_of(9), message);
  EXPECT_TRUE(std::equal(sealed.tag.begin(), sealed.tag.end(), expected.begin()));
}

// Likewise; RecordCipher's own test has GCM's values.
TEST(FrameSeal, EncryptsWhatTheSpecificationSays) {
  FrameSeal seal(key_of(9), FrameProtection::Encrypted);
  RecordCipher cipher(key_of(9));
  for (const std::string_view text : {"first", "the second"}) {
    const auto message = bytes_of(text);
    const FrameSeal::Sealed sealed = seal.seal({0x0102, 0x0304}, message).value();
    std::vector<uint8_t> head = {static_cast<uint8_t>(16 + text.size() + 16), 0, 0, 0};
    for (const uint8_t byte : {2, 1, 0, 0, 0, 0, 0, 0, 4, 3, 0, 0, 0, 0, 0, 0})
      head.push_back(byte);
    EXPECT_TRUE(std::equal(sealed.head.begin(), sealed.head.end(), head.begin(), head.end()));
    std::vector<uint8_t> plain(message.size());
    ASSERT_TRUE(cipher.open(head, sealed.message, sealed.tag, plain));
    EXPECT_EQ(plain, message);
  }
}

TEST(FrameSeal, EncryptedMessagesCannotBeRead) {
  FrameSeal seal(key_of(9), FrameProtection::Encrypted);
  const std::string text(100'000, 'x');
  const auto sealed = seal.seal({1, 0}, bytes_of(text)).value();
  ASSERT_EQ(sealed.message.size(), text.size());
  EXPECT_EQ(std::string_view(reinterpret_cast<const char*>(sealed.message.data()), text.size())
                .find("xxxx"),
            std::string_view::npos);
}

TEST_P(FrameSealTest, RefusesEveryChangedByte) {
  FrameSeal sending = seal_of(1);
  auto good = frame(sending, {1, 0}, "a message of some bytes");
  for (size_t place = 0; place < good.size(); ++place) {
    auto changed = good;
    changed[place] ^= 0x10;
    FrameSeal receiving = seal_of(1);
    EXPECT_EQ(receiving.open(changed).status().code(), StatusCode::PermissionDenied) << place;
  }
  FrameSeal receiving = seal_of(1);
  EXPECT_TRUE(receiving.open(good).is_ok());
}

TEST_P(FrameSealTest, RefusesFramesOfAnotherKeyOrPlace) {
  FrameSeal sending = seal_of(1);
  auto first = frame(sending, {1, 0}, "first");
  auto second = frame(sending, {2, 0}, "second");
  FrameSeal other_key = seal_of(2);
  auto to_another = first;
  EXPECT_FALSE(other_key.open(to_another).is_ok());
  FrameSeal left_out = seal_of(1);
  EXPECT_FALSE(left_out.open(second).is_ok());
  FrameSeal repeated = seal_of(1);
  auto once = first;
  EXPECT_TRUE(repeated.open(once).is_ok());
  EXPECT_FALSE(repeated.open(first).is_ok());
}

TEST_P(FrameSealTest, RefusesFramesWithoutAMessage) {
  for (const size_t size : {0u, 1u, 16u, 31u, 32u}) {
    FrameSeal receiving = seal_of(1);
    std::vector<uint8_t> zeros(size, 0);
    EXPECT_EQ(receiving.open(zeros).status().code(), StatusCode::Protocol);
  }
}

}  // namespace
}  // namespace braid
