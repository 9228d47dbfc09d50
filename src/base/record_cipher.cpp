// SPDX-License-Identifier: Apache-2.0
#include "base/record_cipher.h"

#include <algorithm>
#include <array>
#include <climits>
#include <cstring>
#include <string_view>

#include <openssl/evp.h>

#include "base/assert.h"

namespace braid {
namespace {

constexpr size_t kNonceBytes = 12;
constexpr std::string_view kNextKeyLabel = "braid next key";

}  // namespace

void RecordCipher::Free::operator()(EVP_CIPHER_CTX* context) const { EVP_CIPHER_CTX_free(context); }

RecordCipher::RecordCipher(const Sha256Digest& key, uint64_t records_per_key)
    : context_(EVP_CIPHER_CTX_new()), key_(key), records_per_key_(records_per_key) {
  BRAID_ASSERT(records_per_key_ > 0, "a key is for at least one record");
  const bool is_ready =
      context_ != nullptr &&
      EVP_CipherInit_ex2(context_.get(), EVP_aes_256_gcm(), key_.data(), nullptr, 1, nullptr) == 1;
  BRAID_ASSERT(is_ready, "OpenSSL must have AES-256-GCM");
}

bool RecordCipher::begin(bool seals) {
  const uint8_t* next_key = nullptr;  // the key stays
  if (records_ > 0 && records_ % records_per_key_ == 0) {
    key_ = hmac_sha256(
        key_, {reinterpret_cast<const uint8_t*>(kNextKeyLabel.data()), kNextKeyLabel.size()});
    next_key = key_.data();
  }
  std::array<uint8_t, kNonceBytes> nonce{};
  std::memcpy(nonce.data(), &records_, sizeof(records_));
  ++records_;
  return EVP_CipherInit_ex2(context_.get(), nullptr, next_key, nonce.data(), seals ? 1 : 0,
                            nullptr) == 1;
}

// `out`: null for bytes that stay in clear.
bool RecordCipher::add(uint8_t* out, std::span<const uint8_t> in) {
  BRAID_ASSERT(in.size() <= INT_MAX, "OpenSSL counts in int");
  int written = 0;
  return in.empty() || EVP_CipherUpdate(context_.get(), out, &written, in.data(),
                                        static_cast<int>(in.size())) == 1;
}

Status RecordCipher::seal(std::span<const uint8_t> clear,
                          std::span<const std::span<const uint8_t>> parts,
                          std::span<uint8_t> sealed, std::span<uint8_t, kTagBytes> tag) {
  bool is_done = begin(true) && add(nullptr, clear);
  size_t offset = 0;
  for (const auto& part : parts) {
    BRAID_ASSERT(part.size() <= sealed.size() - offset, "a record has as many bytes as its parts");
    is_done = is_done && add(sealed.data() + offset, part);
    offset += part.size();
  }
  BRAID_ASSERT(offset == sealed.size(), "a record has as many bytes as its parts");
  std::array<uint8_t, kTagBytes> rest{};  // GCM leaves none
  int rest_bytes = 0;
  is_done = is_done && EVP_CipherFinal_ex(context_.get(), rest.data(), &rest_bytes) == 1 &&
            EVP_CIPHER_CTX_ctrl(context_.get(), EVP_CTRL_AEAD_GET_TAG, kTagBytes, tag.data()) == 1;
  return is_done ? Status::ok() : Status(StatusCode::Internal, "OpenSSL did not encrypt a record");
}

Status RecordCipher::open(std::span<const uint8_t> clear, std::span<const uint8_t> sealed,
                          std::span<const uint8_t, kTagBytes> tag, std::span<uint8_t> plain) {
  BRAID_ASSERT(plain.size() == sealed.size(), "a record's bytes are as many in clear");
  std::array<uint8_t, kTagBytes> wanted{};  // OpenSSL takes no const
  std::copy(tag.begin(), tag.end(), wanted.begin());
  std::array<uint8_t, kTagBytes> rest{};
  int rest_bytes = 0;
  if (begin(false) && add(nullptr, clear) && add(plain.data(), sealed) &&
      EVP_CIPHER_CTX_ctrl(context_.get(), EVP_CTRL_AEAD_SET_TAG, kTagBytes, wanted.data()) == 1 &&
      EVP_CipherFinal_ex(context_.get(), rest.data(), &rest_bytes) == 1)
    return Status::ok();
  std::fill(plain.begin(), plain.end(), uint8_t{0});
  return {StatusCode::PermissionDenied,
          "a record came that the peer has not sent, or not here: its tag is wrong"};
}

}  // namespace braid
