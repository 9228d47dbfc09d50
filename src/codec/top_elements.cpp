// SPDX-License-Identifier: Apache-2.0
#include "codec/top_elements.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <span>

#include "base/hash.h"

namespace braid {
namespace {

constexpr uint64_t kSampleMin = 1024;
constexpr uint64_t kSampleMax = 16'384;
constexpr uint64_t kSampleShare = 16;  // one of so many elements
constexpr uint64_t kPickedSlack = 1024;
constexpr uint32_t kNotZero = 1;  // the smallest magnitude that there is but 0

uint32_t magnitude_at(const float* values, uint64_t index) {
  uint32_t bits;
  std::memcpy(&bits, values + index, sizeof(bits));
  return bits & kMagnitudeMask;
}

// The magnitude that a quarter more elements than `k` have, and five deviations for the sample's
// chance.
uint32_t estimate(uint64_t count, uint64_t k, const std::function<uint32_t(uint64_t)>& sample) {
  const uint64_t size = std::min(count, std::clamp(count / kSampleShare, kSampleMin, kSampleMax));
  const uint64_t stride = count / size;
  const double expected =
      static_cast<double>(k) / static_cast<double>(count) * static_cast<double>(size);
  const auto rank = static_cast<uint64_t>(1.25 * expected + 5 * std::sqrt(expected) + 4);
  if (rank >= size) return 0;
  std::vector<uint32_t> magnitudes(size);
  for (uint64_t i = 0; i < size; ++i) {
    // Not always the same place within a stride: rows of a matrix may have its length.
    magnitudes[i] = sample(i * stride + mix64(i + 1) % stride);
  }
  const auto at = magnitudes.begin() + static_cast<ptrdiff_t>(rank);
  std::nth_element(magnitudes.begin(), at, magnitudes.end(), std::greater<>());
  return *at;
}

// The k-th largest magnitude, found digit by digit, and how many are larger.
struct KthMagnitude {
  uint32_t magnitude = 0;
  uint64_t larger = 0;
};

KthMagnitude find_kth(const float* values, uint64_t count, uint64_t k) {
  constexpr std::array<uint32_t, 4> kShifts = {31, 20, 10, 0};
  KthMagnitude kth;
  for (size_t digit = 1; digit < kShifts.size(); ++digit) {
    const uint32_t above = kShifts[digit - 1];
    const uint32_t shift = kShifts[digit];
    std::vector<uint64_t> histogram(size_t{1} << (above - shift));
    for (uint64_t i = 0; i < count; ++i) {
      const uint32_t magnitude = magnitude_at(values, i);
      if (magnitude >> above != kth.magnitude >> above) continue;
      ++histogram[(magnitude >> shift) & (histogram.size() - 1)];
    }
    size_t bucket = histogram.size() - 1;
    for (; kth.larger + histogram[bucket] < k; --bucket) kth.larger += histogram[bucket];
    kth.magnitude |= static_cast<uint32_t>(bucket) << shift;
  }
  return kth;
}

}  // namespace

TopElements::TopElements(uint64_t count, uint64_t k,
                         const std::function<uint32_t(uint64_t)>& sample)
    : count_(count),
      k_(k),
      picked_max_(std::min(count, 3 * k + kPickedSlack)),
      magnitude_(std::max(kNotZero, estimate(count, k, sample))),
      picked_(std::make_unique_for_overwrite<PickedElement[]>(picked_max_ + kPickedSpare)) {}

void TopElements::look_at(const float* values, uint64_t count) {
  if (found_ <= picked_max_) {
    found_ = pick_from(values, count, static_cast<uint32_t>(looked_at_), magnitude_, found_,
                       picked_max_, picked_.get());
  }
  looked_at_ += count;
}

std::vector<uint32_t> TopElements::choose(const float* values) const {
  if (found_ > picked_max_) return choose_of_all(values);
  if (found_ >= k_) return choose_of_picked();
  return magnitude_ == kNotZero ? picked_and_zeros() : choose_of_all(values);
}

std::vector<uint32_t> TopElements::picked_and_zeros() const {
  std::vector<uint32_t> chosen;
  chosen.reserve(k_);
  uint64_t next = 0;  // in picked_
  for (uint32_t i = 0; chosen.size() + (found_ - next) < k_; ++i) {
    chosen.push_back(i);
    if (next < found_ && picked_[next].index == i) ++next;
  }
  for (; next < found_; ++next) chosen.push_back(picked_[next].index);
  return chosen;
}

std::vector<uint32_t> TopElements::choose_of_picked() const {
  const std::span<const PickedElement> picked(picked_.get(), found_);
  std::vector<uint32_t> magnitudes;
  magnitudes.reserve(picked.size());
  for (const auto& one : picked) magnitudes.push_back(one.magnitude);
  const auto at = magnitudes.begin() + static_cast<ptrdiff_t>(k_ - 1);
  std::nth_element(magnitudes.begin(), at, magnitudes.end(), std::greater<>());
  const uint32_t kth = *at;
  const auto larger = static_cast<uint64_t>(
      std::count_if(magnitudes.begin(), at, [kth](uint32_t one) { return one > kth; }));
  uint64_t equal_left = k_ - larger;
  std::vector<uint32_t> chosen;
  chosen.reserve(k_);
  for (const auto& one : picked) {
    if (one.magnitude < kth) continue;
    if (one.magnitude == kth) {
      if (equal_left == 0) continue;
      --equal_left;
    }
    chosen.push_back(one.index);
  }
  return chosen;
}

std::vector<uint32_t> TopElements::choose_of_all(const float* values) const {
  const KthMagnitude kth = find_kth(values, count_, k_);
  uint64_t equal_left = k_ - kth.larger;
  std::vector<uint32_t> chosen;
  chosen.reserve(k_);
  for (uint64_t i = 0; i < count_; ++i) {
    const uint32_t magnitude = magnitude_at(values, i);
    if (magnitude < kth.magnitude) continue;
    if (magnitude == kth.magnitude) {
      if (equal_left == 0) continue;
      --equal_left;
    }
    chosen.push_back(static_cast<uint32_t>(i));
  }
  return chosen;
}

}  // namespace braid
