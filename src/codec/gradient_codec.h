// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string_view>

#include "base/status.h"
#include "codec/codec_spec.h"
#include "codec/into.h"

namespace braid {

// The most elements of a part.
inline constexpr uint64_t kPartElementsMax = UINT32_MAX;
// The most parts whose sum counts_codec() can carry: a count fits into a byte.
inline constexpr uint32_t kIntegerSumPartsMax = 127;

// Whose bytes these are. It decides what stochastic rounding draws, and nothing else. The same
// place gives the same bytes, on every machine.
struct EncodePlace {
  uint64_t stream = 0;  // tells nodes, tensors and directions apart
  uint64_t step = 0;
  uint64_t first_element = 0;  // of the part in its tensor
};

// How far one NaN or infinity spreads: what comes out as NaN is this element, its block or its
// part. ±infinity of bf16, fp16, Top-K, DGC and lossless codecs stays what it is.
enum class NotFinite : uint8_t { Element, Block, Part };

struct CodecTraits {
  // A part may be cut after every so many elements: the encoded pieces, one after the other, are
  // the encoded part. 0: nowhere, for the codec looks at the part as a whole.
  uint64_t granule = 1;
  uint32_t memory_floats = 1;  // error memory, for each element
  bool needs_memory = false;   // encode() refuses to go without
  bool wants_memory = false;   // it can, but training is known to suffer
  bool is_lossless = false;    // decoded bits are the encoded ones
  bool is_unbiased = false;    // the mean over all seeds is the input
  bool has_exact_size = true;  // encoded_bytes_max() is what encode() makes
  NotFinite not_finite = NotFinite::Element;
};

// What travels instead of a part's float32 elements. A part is a range of a tensor with one owner;
// blocks begin anew in each part. Immutable, has no state of its own and may be used by any number
// of threads. All operations are pure functions of their arguments and give the same bits whatever
// vectors the processor has.
//
// **Error feedback** (Karimireddy et al., "Error Feedback Fixes SignSGD and other Gradient
// Compression Schemes", ICML 2019, algorithm 2) is the same around every codec: with memory e,
// encode() encodes p = gradient + e and leaves e = p − decoded(p) there. The memory is the
// caller's, belongs to the part's elements, and starts with zeros.
class GradientCodec {
 public:
  GradientCodec(const CodecSpec& spec, const CodecTraits& traits) : spec_(spec), traits_(traits) {}
  virtual ~GradientCodec() = default;
  GradientCodec(const GradientCodec&) = delete;
  GradientCodec& operator=(const GradientCodec&) = delete;

  const CodecSpec& spec() const { return spec_; }
  const CodecTraits& traits() const { return traits_; }

  // The most bytes of `count` elements; grows with `count`, 0 for 0.
  virtual uint64_t encoded_bytes_max(uint64_t count) const = 0;

  // Returns the length. `memory` is empty, or has traits().memory_floats for each element, and is
  // written only when this succeeds. `encoded` has room for encoded_bytes_max(). Nothing overlaps.
  // INVALID_ARGUMENT: sizes that do not fit each other.
  Result<uint64_t> encode(std::span<const float> gradient, std::span<float> memory,
                          const EncodePlace& place, std::span<uint8_t> encoded) const;

  // `encoded` comes from a peer and may be anything; its length is that of the part. PROTOCOL:
  // encode() makes no such bytes of a part of this size, and nothing has been written.
  Status decode(std::span<const uint8_t> encoded, std::span<float> out) const;
  Status decode_and_add(std::span<const uint8_t> encoded, std::span<float> sum) const;

 protected:
  // The number of elements is no 0 in any of these. The caller has checked all sizes.
  virtual uint64_t encode_part(std::span<const float> values, const EncodePlace& place,
                               uint8_t* encoded) const = 0;
  // Has checked `encoded` before it writes to `elements`.
  virtual Status decode_part(std::span<const uint8_t> encoded, Into into,
                             std::span<float> elements) const = 0;
  // With error feedback. This one does it in slices that stay in the cache, where traits().granule
  // allows that.
  virtual uint64_t encode_with_memory(std::span<const float> gradient, std::span<float> memory,
                                      const EncodePlace& place, uint8_t* encoded) const;

  // PROTOCOL unless `encoded` has encoded_bytes_max() bytes: for codecs of exact size.
  Status check_length(std::span<const uint8_t> encoded, uint64_t count) const;
  Status malformed(std::string_view what) const;

 private:
  Status decode_into(std::span<const uint8_t> encoded, Into into, std::span<float> elements) const;

  const CodecSpec spec_;
  const CodecTraits traits_;
};

// Nothing else makes codecs. INVALID_ARGUMENT: a parameter does not fit, as parse_codec_spec says.
Result<std::unique_ptr<GradientCodec>> make_codec(const CodecSpec& spec);

}  // namespace braid
