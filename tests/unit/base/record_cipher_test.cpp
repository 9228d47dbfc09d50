// SPDX-License-Identifier: Apache-2.0
#include "base/record_cipher.h"

#include <array>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

namespace braid {
namespace {

using Bytes = std::vector<uint8_t>;
using Tag = std::array<uint8_t, RecordCipher::kTagBytes>;

struct Record {
  Bytes clear;
  Bytes sealed;
  Tag tag{};
};

std::string hex(std::span<const uint8_t> bytes) {
  std::string text;
  for (uint8_t byte : bytes) {
    text += "0123456789abcdef"[byte >> 4];
    text += "0123456789abcdef"[byte & 15];
  }
  return text;
}

Bytes counted(size_t count, uint8_t first) {
  Bytes bytes(count);
  for (size_t i = 0; i < count; ++i) bytes[i] = static_cast<uint8_t>(first + i);
  return bytes;
}

Sha256Digest key_of(uint8_t byte) {
  Sha256Digest key{};
  key.fill(byte);
  return key;
}

Record seal(RecordCipher& cipher, const Bytes& clear, const std::vector<Bytes>& parts) {
  Record record{.clear = clear, .sealed = {}};
  size_t bytes = 0;
  std::vector<std::span<const uint8_t>> spans;
  for (const Bytes& part : parts) {
    bytes += part.size();
    spans.emplace_back(part);
  }
  record.sealed.resize(bytes);
  EXPECT_TRUE(cipher.seal(record.clear, spans, record.sealed, record.tag));
  return record;
}

Status open(RecordCipher& cipher, const Record& record, Bytes& plain) {
  plain.assign(record.sealed.size(), 0xee);
  return cipher.open(record.clear, record.sealed, record.tag, plain);
}

::testing::AssertionResult opens(RecordCipher& cipher, const Record& record, const Bytes& wanted) {
  Bytes plain;
  const Status status = open(cipher, record, plain);
  if (!status) return ::testing::AssertionFailure() << status.to_string();
  if (plain != wanted) return ::testing::AssertionFailure() << "other bytes: " << hex(plain);
  return ::testing::AssertionSuccess();
}

::testing::AssertionResult refuses(RecordCipher& cipher, const Record& record) {
  Bytes plain;
  const Status status = open(cipher, record, plain);
  if (plain != Bytes(plain.size(), 0))
    return ::testing::AssertionFailure() << "left over: " << hex(plain);
  if (status.code() == StatusCode::PermissionDenied) return ::testing::AssertionSuccess();
  return ::testing::AssertionFailure() << "not refused: " << status.to_string();
}

// Test cases 13 and 14 of "The Galois/Counter Mode of Operation" (McGrew and Viega), which NIST
// SP 800-38D took: key and nonce are zeros.
TEST(RecordCipher, GivesTheValuesOfGcm) {
  RecordCipher empty(key_of(0));
  EXPECT_EQ(hex(seal(empty, {}, {}).tag), "530f8afbc74536b9a963b4f1c4cb738b");

  RecordCipher zeros(key_of(0));
  const Record record = seal(zeros, {}, {Bytes(16)});
  EXPECT_EQ(hex(record.sealed), "cea7403d4d606b6e074ec5d3baf39d18");
  EXPECT_EQ(hex(record.tag), "d0d1c8a799996bf0265b98b5d48ab919");
}

TEST(RecordCipher, OpensWhatWasSealedInParts) {
  RecordCipher sealer(key_of(7));
  RecordCipher opener(key_of(7));
  EXPECT_TRUE(opens(opener, seal(sealer, counted(8, 1), {counted(3, 10), {}, counted(1000, 13)}),
                    counted(1003, 10)));
  EXPECT_TRUE(opens(opener, seal(sealer, {}, {counted(65536, 0)}), counted(65536, 0)));
  EXPECT_TRUE(opens(opener, seal(sealer, counted(8, 1), {}), {}));
}

TEST(RecordCipher, OpensInTheSameMemory) {
  RecordCipher sealer(key_of(7));
  RecordCipher opener(key_of(7));
  Record record = seal(sealer, counted(8, 1), {counted(100, 10)});
  ASSERT_TRUE(opener.open(record.clear, record.sealed, record.tag, record.sealed));
  EXPECT_EQ(record.sealed, counted(100, 10));
}

TEST(RecordCipher, EncryptsTheSameBytesDifferentlyEachTime) {
  RecordCipher cipher(key_of(7));
  const Record first = seal(cipher, {}, {counted(64, 0)});
  const Record second = seal(cipher, {}, {counted(64, 0)});
  EXPECT_NE(first.sealed, counted(64, 0));
  EXPECT_NE(first.sealed, second.sealed);
  EXPECT_NE(first.tag, second.tag);
}

TEST(RecordCipher, RefusesEachChangedBit) {
  RecordCipher sealer(key_of(7));
  const Record record = seal(sealer, counted(5, 1), {counted(20, 10)});
  const auto refuses_changed = [&](size_t bit) {
    Record changed = record;
    size_t byte = bit / 8;
    const auto mask = static_cast<uint8_t>(1U << (bit % 8));
    if (byte < changed.clear.size()) {
      changed.clear[byte] ^= mask;
    } else if (byte -= changed.clear.size(); byte < changed.sealed.size()) {
      changed.sealed[byte] ^= mask;
    } else {
      changed.tag[byte - changed.sealed.size()] ^= mask;
    }
    RecordCipher opener(key_of(7));
    return refuses(opener, changed);
  };
  for (size_t bit = 0; bit < 8 * (5 + 20 + RecordCipher::kTagBytes); ++bit)
    EXPECT_TRUE(refuses_changed(bit)) << "bit " << bit;
  RecordCipher opener(key_of(7));
  EXPECT_TRUE(opens(opener, record, counted(20, 10)));
}

TEST(RecordCipher, RefusesAnotherKeysRecords) {
  RecordCipher sealer(key_of(7));
  RecordCipher opener(key_of(8));
  EXPECT_TRUE(refuses(opener, seal(sealer, {}, {counted(20, 10)})));
}

TEST(RecordCipher, RefusesBytesThatMoveBetweenClearAndSealed) {
  RecordCipher sealer(key_of(7));
  Record record = seal(sealer, counted(5, 1), {counted(20, 10)});
  record.clear.push_back(record.sealed.front());
  record.sealed.erase(record.sealed.begin());
  RecordCipher opener(key_of(7));
  EXPECT_TRUE(refuses(opener, record));
}

TEST(RecordCipher, RefusesRecordsOutOfTheirOrder) {
  RecordCipher sealer(key_of(7));
  const Record first = seal(sealer, {}, {counted(20, 1)});
  const Record second = seal(sealer, {}, {counted(20, 2)});

  RecordCipher skipping(key_of(7));
  EXPECT_TRUE(refuses(skipping, second));

  RecordCipher repeating(key_of(7));
  EXPECT_TRUE(opens(repeating, first, counted(20, 1)));
  EXPECT_TRUE(refuses(repeating, first));
}

TEST(RecordCipher, ReplacesTheKeyOnBothSides) {
  constexpr uint64_t kLimit = 3;
  RecordCipher sealer(key_of(7), kLimit);
  RecordCipher opener(key_of(7), kLimit);
  RecordCipher with_first_key(key_of(7));
  for (uint8_t i = 0; i < 3 * kLimit; ++i) {
    const Record record = seal(sealer, {}, {counted(20, i)});
    EXPECT_TRUE(opens(opener, record, counted(20, i))) << "record " << int{i};
    if (i < kLimit)
      EXPECT_TRUE(opens(with_first_key, record, counted(20, i))) << "record " << int{i};
    else
      EXPECT_TRUE(refuses(with_first_key, record)) << "record " << int{i};
  }
}

TEST(RecordCipher, GoesOnAfterAMove) {
  RecordCipher sealer(key_of(7));
  RecordCipher opener(key_of(7));
  EXPECT_TRUE(opens(opener, seal(sealer, {}, {counted(20, 1)}), counted(20, 1)));
  RecordCipher moved = std::move(sealer);
  EXPECT_TRUE(opens(opener, seal(moved, {}, {counted(20, 2)}), counted(20, 2)));
}

}  // namespace
}  // namespace braid
