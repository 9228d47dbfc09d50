// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <bit>
#include <cstring>

#include "base/checked.h"
#include "codec/add_kernels.h"
#include "codec/all_codecs.h"

namespace braid {
namespace {

constexpr uint64_t kBitsPerByte = 8;

CodecTraits block_sparse_traits() {
  CodecTraits traits;
  traits.granule = 0;
  traits.is_lossless = true;
  traits.is_unbiased = true;
  traits.has_exact_size = false;
  return traits;
}

bool is_zero(std::span<const float> block) {
  uint32_t any = 0;
  for (const float& element : block) {
    uint32_t bits;
    std::memcpy(&bits, &element, sizeof(bits));
    any |= bits;
  }
  return any == 0;
}

// Blocks that are not zero (Fei et al., "Efficient Sparse Collective Communication and its
// application to Accelerate Distributed Deep Learning", SIGCOMM 2021: OmniReduce): one bit for each
// block, block i's in bit i % 8 of byte i / 8, then the elements of those whose bit is 1. A block
// with −0 is not zero: nothing is lost.
class BlockSparseCodec final : public GradientCodec {
 public:
  explicit BlockSparseCodec(const CodecSpec& spec) : GradientCodec(spec, block_sparse_traits()) {}

  uint64_t encoded_bytes_max(uint64_t count) const override {
    return bitmap_bytes(count) + count * sizeof(float);
  }

 protected:
  uint64_t encode_part(std::span<const float> values, const EncodePlace&,
                       uint8_t* encoded) const override {
    std::memset(encoded, 0, bitmap_bytes(values.size()));
    uint64_t bytes = bitmap_bytes(values.size());
    for (uint64_t i = 0; i < blocks(values.size()); ++i) {
      const auto block = values.subspan(i * spec().block, length(values.size(), i));
      if (is_zero(block)) continue;
      encoded[i / kBitsPerByte] |= static_cast<uint8_t>(1u << (i % kBitsPerByte));
      std::memcpy(encoded + bytes, block.data(), block.size_bytes());
      bytes += block.size_bytes();
    }
    return bytes;
  }

  Status decode_part(std::span<const uint8_t> encoded, Into into,
                     std::span<float> elements) const override {
    uint64_t bytes = bitmap_bytes(elements.size());
    BRAID_RETURN_IF_ERROR(check(encoded, elements.size()));
    for (uint64_t i = 0; i < blocks(elements.size()); ++i) {
      const auto block = elements.subspan(i * spec().block, length(elements.size(), i));
      if (has_block(encoded, i)) {
        decode_floats(encoded.data() + bytes, block.size(), into, block.data());
        bytes += block.size_bytes();
      } else if (into == Into::Store) {
        std::fill(block.begin(), block.end(), 0.0f);
      }
    }
    return Status::ok();
  }

 private:
  uint64_t blocks(uint64_t count) const { return divide_up(count, spec().block); }
  uint64_t bitmap_bytes(uint64_t count) const { return divide_up(blocks(count), kBitsPerByte); }
  uint64_t length(uint64_t count, uint64_t block) const {
    return std::min<uint64_t>(spec().block, count - block * spec().block);
  }
  static bool has_block(std::span<const uint8_t> encoded, uint64_t block) {
    return ((encoded[block / kBitsPerByte] >> (block % kBitsPerByte)) & 1) != 0;
  }

  // The bitmap says how long the part is.
  Status check(std::span<const uint8_t> encoded, uint64_t count) const {
    const uint64_t bitmap = bitmap_bytes(count);
    if (encoded.size() < bitmap) return malformed("shorter than its bitmap");
    const uint64_t last = blocks(count) - 1;
    const auto past = static_cast<uint32_t>(encoded[bitmap - 1]) >> (last % kBitsPerByte) >> 1;
    if (past != 0) return malformed("bits for blocks past the end");
    uint64_t sent = 0;
    for (uint64_t i = 0; i < bitmap; ++i) sent += static_cast<uint64_t>(std::popcount(encoded[i]));
    uint64_t elements = sent * spec().block;
    if (has_block(encoded, last)) elements -= spec().block - length(count, last);
    if (encoded.size() - bitmap != elements * sizeof(float)) {
      return malformed("blocks and bitmap differ in number");
    }
    return Status::ok();
  }
};

}  // namespace

std::unique_ptr<GradientCodec> block_sparse_codec(const CodecSpec& spec) {
  return std::make_unique<BlockSparseCodec>(spec);
}

}  // namespace braid
