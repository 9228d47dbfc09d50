// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include <openssl/types.h>

#include "base/hmac.h"
#include "base/status.h"

namespace braid {

// Encrypts and authenticates the records of one direction of one connection with AES-256-GCM (NIST
// SP 800-38D): the n-th record fits only the n-th place. After kRecordsPerKey records the key is
// replaced by one made from it (RFC 8446, 7.2, does the same), so no key meets GCM's limits. Either
// seals or opens. proto/SPEC.md has the bytes.
class RecordCipher {
 public:
  static constexpr size_t kTagBytes = 16;
  static constexpr uint64_t kRecordsPerKey = uint64_t{1} << 20;

  // Both sides' `records_per_key` must be the same.
  explicit RecordCipher(const Sha256Digest& key, uint64_t records_per_key = kRecordsPerKey);

  // The next record. `clear` is authenticated, not encrypted; `parts` are encrypted one after the
  // other into `sealed` (as many bytes), then the tag. An error is OpenSSL's: nothing may be sent.
  Status seal(std::span<const uint8_t> clear, std::span<const std::span<const uint8_t>> parts,
              std::span<uint8_t> sealed, std::span<uint8_t, kTagBytes> tag);
  // The next record that came; `plain` has as many bytes as `sealed`, may be the same memory.
  // PermissionDenied: its sender does not have the key, or it was changed, left out or repeated on
  // the way; `plain` is zeros then.
  Status open(std::span<const uint8_t> clear, std::span<const uint8_t> sealed,
              std::span<const uint8_t, kTagBytes> tag, std::span<uint8_t> plain);

 private:
  struct Free {
    void operator()(EVP_CIPHER_CTX* context) const;
  };

  bool begin(bool seals);
  bool add(uint8_t* out, std::span<const uint8_t> in);

  std::unique_ptr<EVP_CIPHER_CTX, Free> context_;
  Sha256Digest key_;
  uint64_t records_per_key_;
  uint64_t records_ = 0;  // sealed, or opened
};

}  // namespace braid
