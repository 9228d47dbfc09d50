// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "base/record_cipher.h"

namespace braid {

// How an encrypted flow's messages are cut into records: 4 bytes of length (little-endian, in
// clear, authenticated), so many encrypted bytes, the tag.
//
//   header and payload are at most kBytesMax     one record
//   else                                         the header alone, then records of kBytesMax of the
//                                                payload, the last one with the rest
//
// So payload that has a place is decrypted to it, and pieces to fold are multiples of
// ChunkSink::kPieceBytes.
struct SealedRecord {
  static constexpr size_t kBytesMax = 16 << 10;
  static constexpr size_t kLengthBytes = sizeof(uint32_t);
  static constexpr size_t kExtraBytes = kLengthBytes + RecordCipher::kTagBytes;
  static constexpr size_t kSizeMax = kBytesMax + kExtraBytes;

  static constexpr bool is_alone(size_t header, size_t payload) {
    return header + payload <= kBytesMax;
  }
  static constexpr size_t next(size_t payload_left) { return std::min(payload_left, kBytesMax); }
};

}  // namespace braid
