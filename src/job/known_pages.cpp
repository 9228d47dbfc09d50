// SPDX-License-Identifier: Apache-2.0
#include "job/known_pages.h"

#include <algorithm>

namespace braid {
namespace {

// The smallest page there is: where they are larger, one has several bits.
constexpr uint64_t kPageBytes = 4096;
constexpr uint64_t kKnownBytesMax = 1ull << 30;
constexpr uint64_t kWordPages = 64;

// Calls `with(word, bits)` for the bits of each word until it says no.
template <typename With>
bool for_each_word(uint64_t offset, uint64_t bytes, With with) {
  uint64_t page = offset / kPageBytes;
  const uint64_t end = (offset + bytes - 1) / kPageBytes + 1;
  while (page < end) {
    const uint64_t word = page / kWordPages;
    const uint64_t first = page % kWordPages;
    const uint64_t pages = std::min(kWordPages - first, end - page);
    if (!with(word, UINT64_MAX >> (kWordPages - pages) << first)) return false;
    page += pages;
  }
  return true;
}

}  // namespace

bool KnownPages::has(uint64_t offset, uint64_t bytes) const {
  if (bytes == 0) return true;
  return for_each_word(offset, bytes, [this](uint64_t word, uint64_t bits) {
    return word < words_.size() && (words_[word] & bits) == bits;
  });
}

void KnownPages::add(uint64_t offset, uint64_t bytes) {
  if (bytes == 0 || offset >= kKnownBytesMax) return;
  for_each_word(offset, std::min(bytes, kKnownBytesMax - offset),
                [this](uint64_t word, uint64_t bits) {
                  if (word >= words_.size()) words_.resize(word + 1);
                  words_[word] |= bits;
                  return true;
                });
}

}  // namespace braid
