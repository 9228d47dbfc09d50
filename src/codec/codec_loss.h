// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>

#include "base/hash.h"

namespace braid {

// How much of one operation's gradients a codec loses in one step, as one node measures it, or all
// nodes together: what several nodes have measured is added up. Squares are of elements in units of
// the result: parts of an average are divided by the number of ranks before they are encoded.
//
// With S the exact sum of all nodes' gradients and D the decoded one that all ranks get, S − D is
// the sum of the errors of all encodings on the way: gradient − decoded of each part, and sum −
// decoded of each sum that is encoded again. So each node sketches its own errors, an owner that
// has decoded sums sketches those, and the cosine of S and D is that of the sketches' sums.
//
// The sketch: Alon, Matias, Szegedy, "The Space Complexity of Approximating the Frequency Moments",
// STOC 1996, in the form of Charikar, Chen, Farach-Colton, "Finding Frequent Items in Data
// Streams", ICALP 2002. Each element is added, or subtracted, in one of the buckets; which follows
// from its place in the set, the same on all nodes. The cosine's standard deviation is
// (1 − cosine²) / √buckets.
struct CodecLoss {
  static constexpr size_t kBuckets = 256;
  using Sketch = std::array<double, kBuckets>;

  double given_squares = 0;   // of what was given to a codec that keeps what it loses
  double memory_squares = 0;  // of what it keeps of these elements, after the step
  uint64_t elements = 0;      // that were encoded, but for sums that travel exactly
  uint64_t saturated = 0;     // of these, what the codec cannot send, however large it is
  uint64_t not_finite = 0;    // NaN and infinity among the gradients' elements
  bool has_sketches = true;   // false: an error is not finite, or sums are encoded more than once
  Sketch error{};
  Sketch decoded{};

  void add(const CodecLoss& other);

  // The memory's norm over the norm of what was given; 0 where the codec has no memory. Nothing:
  // gradients are not finite, or all of them are 0.
  std::optional<double> residual() const;
  // The cosine between the decoded and the exact sum. Nothing: there are no sketches, or one of the
  // sums is 0.
  std::optional<double> cosine() const;
  // Share of the elements, 0 to 1.
  double saturation() const;
};

// What becomes of some elements that follow one another in their set, in one encoding. All but
// `kept`, which may be empty, are as many.
struct EncodedElements {
  uint64_t first_element = 0;           // in the set
  std::span<const float> given;         // to the codec
  std::span<const float> kept;          // in the memory, after encoding
  std::span<const float> decoded;       // of what was encoded
  bool is_part = true;                  // else a sum
  bool is_exact = false;                // it travels without loss
  bool is_final = false;                // decoded elements are, or add up to, the result
  std::optional<float> threshold = {};  // 2bit: what it sends at most of an element in one step
};
void measure_loss(const EncodedElements& encoded, CodecLoss& loss);

// Calls visit(i, bucket, sign) for each i < count: where element first + i belongs in a sketch. The
// elements of one row of 16 have 16 different buckets; the rows' are independent.
template <class Visit>
void for_sketch_buckets(uint64_t first, uint64_t count, const Visit& visit) {
  constexpr uint64_t kRow = 16;
  constexpr uint64_t kSeed = 0x9e3779b97f4a7c15ULL;
  for (uint64_t i = 0; i < count;) {
    const uint64_t hash = mix64((first + i) / kRow + kSeed);
    const uint64_t block = (hash >> 16) % (CodecLoss::kBuckets / kRow) * kRow;
    const uint64_t turn = (hash >> 32) % kRow;
    uint64_t lane = (first + i) % kRow;
    for (; lane < kRow && i < count; ++lane, ++i)
      visit(i, block + (lane ^ turn), (hash >> lane & 1) != 0 ? -1.0 : 1.0);
  }
}

}  // namespace braid
