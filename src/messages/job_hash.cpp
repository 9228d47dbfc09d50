// SPDX-License-Identifier: Apache-2.0
#include "messages/job_hash.h"

#include <algorithm>
#include <cstring>

#include "base/assert.h"
#include "base/hmac.h"

namespace braid {
namespace {

constexpr std::string_view kPurpose = "braid names of a job";
constexpr size_t kWordsMax = 8;

std::span<const uint8_t> bytes_of(std::string_view text) {
  return {reinterpret_cast<const uint8_t*>(text.data()), text.size()};
}

}  // namespace

JobHash::JobHash(uint64_t job_key) {
  std::array<uint8_t, sizeof(job_key)> secret{};
  std::memcpy(secret.data(), &job_key, sizeof(job_key));
  const Sha256Digest digest = hmac_sha256(secret, bytes_of(kPurpose));
  static_assert(sizeof(digest) >= sizeof(key_));
  std::memcpy(key_.data(), digest.data(), sizeof(key_));
}

uint64_t JobHash::of_name(std::string_view name) const {
  // Names have a key of their own: their bytes may be any.
  const SipKey key{key_[0], key_[1] ^ Name};
  return std::max<uint64_t>(siphash24(key, bytes_of(name)), 1);
}

uint64_t JobHash::of(Kind kind, std::initializer_list<uint64_t> words) const {
  BRAID_ASSERT(words.size() <= kWordsMax, "records are short");
  std::array<uint64_t, kWordsMax + 1> record{kind};
  std::copy(words.begin(), words.end(), record.begin() + 1);
  return std::max<uint64_t>(siphash24(key_, {reinterpret_cast<const uint8_t*>(record.data()),
                                             (words.size() + 1) * sizeof(uint64_t)}),
                            1);
}

}  // namespace braid
