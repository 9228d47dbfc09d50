// SPDX-License-Identifier: Apache-2.0
#include "codec/codec_loss.h"

#include <algorithm>
#include <cmath>

#include "base/assert.h"

namespace braid {
namespace {

// Finite values that have become infinite: nothing but fp16 does that.
uint64_t overflowed(std::span<const float> given, std::span<const float> decoded) {
  uint64_t count = 0;
  for (size_t i = 0; i < given.size(); ++i)
    count += std::isfinite(given[i]) && std::isinf(decoded[i]) ? 1 : 0;
  return count;
}

double squares_of(std::span<const float> values) {
  double sum = 0;
  for (const float value : values) sum += static_cast<double>(value) * static_cast<double>(value);
  return sum;
}

void add_to_sketches(const EncodedElements& encoded, CodecLoss& loss) {
  const float* const given = encoded.given.data();
  const float* const decoded = encoded.decoded.data();
  const bool has_error = !encoded.is_exact;
  const bool is_final = encoded.is_final;
  for_sketch_buckets(encoded.first_element, encoded.given.size(),
                     [&](uint64_t i, uint64_t bucket, double sign) {
                       const double out = decoded[i];
                       if (has_error) loss.error[bucket] += sign * (given[i] - out);
                       if (is_final) loss.decoded[bucket] += sign * out;
                     });
}

bool is_finite(const CodecLoss::Sketch& sketch) {
  return std::all_of(sketch.begin(), sketch.end(), [](double sum) { return std::isfinite(sum); });
}

double inner(const CodecLoss::Sketch& a, const CodecLoss::Sketch& b) {
  double sum = 0;
  for (size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
  return sum;
}

}  // namespace

void measure_loss(const EncodedElements& encoded, CodecLoss& loss) {
  const size_t count = encoded.given.size();
  BRAID_ASSERT(
      encoded.decoded.size() == count && (encoded.kept.empty() || encoded.kept.size() == count),
      "all of them are of the same elements");
  if (encoded.is_part) {
    loss.not_finite += static_cast<uint64_t>(std::count_if(
        encoded.given.begin(), encoded.given.end(), [](float one) { return !std::isfinite(one); }));
  }
  if (!encoded.is_exact) {
    loss.elements += count;
    loss.saturated += overflowed(encoded.given, encoded.decoded);
  }
  if (!encoded.kept.empty()) {
    loss.given_squares += squares_of(encoded.given);
    loss.memory_squares += squares_of(encoded.kept);
    if (const auto threshold = encoded.threshold) {
      loss.saturated += static_cast<uint64_t>(
          std::count_if(encoded.kept.begin(), encoded.kept.end(),
                        [&](float one) { return std::abs(one) >= *threshold; }));
    }
  }
  if (!loss.has_sketches) return;
  add_to_sketches(encoded, loss);
  loss.has_sketches = is_finite(loss.error) && is_finite(loss.decoded);
}

void CodecLoss::add(const CodecLoss& other) {
  given_squares += other.given_squares;
  memory_squares += other.memory_squares;
  elements += other.elements;
  saturated += other.saturated;
  not_finite += other.not_finite;
  has_sketches = has_sketches && other.has_sketches;
  for (size_t i = 0; i < kBuckets; ++i) {
    error[i] += other.error[i];
    decoded[i] += other.decoded[i];
  }
}

std::optional<double> CodecLoss::residual() const {
  if (not_finite != 0 || !std::isfinite(given_squares) || !std::isfinite(memory_squares))
    return std::nullopt;
  if (given_squares == 0) return memory_squares == 0 ? std::optional(0.0) : std::nullopt;
  return std::sqrt(memory_squares / given_squares);
}

std::optional<double> CodecLoss::cosine() const {
  if (!has_sketches || not_finite != 0) return std::nullopt;
  Sketch exact = decoded;
  for (size_t i = 0; i < kBuckets; ++i) exact[i] += error[i];
  const double norms = std::sqrt(inner(decoded, decoded)) * std::sqrt(inner(exact, exact));
  if (!(norms > 0) || !std::isfinite(norms)) return std::nullopt;
  return std::clamp(inner(decoded, exact) / norms, -1.0, 1.0);
}

double CodecLoss::saturation() const {
  return elements == 0 ? 0 : static_cast<double>(saturated) / static_cast<double>(elements);
}

}  // namespace braid
