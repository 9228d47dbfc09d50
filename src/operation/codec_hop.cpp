// SPDX-License-Identifier: Apache-2.0
#include "operation/codec_hop.h"

#include <algorithm>

#include "base/assert.h"
#include "base/hash.h"

namespace braid {
namespace {

// The memory of a chunk as codecs want it: its planes one after the other, each in one piece.
class ChunkMemory {
 public:
  ChunkMemory(ErrorMemory& memory, std::vector<ElementRanges::Range> pieces, uint64_t elements)
      : memory_(memory), pieces_(std::move(pieces)) {
    if (pieces_.size() == 1 && memory.planes() == 1) {
      floats_ = memory.elements(0, pieces_.front().first, elements);
      return;
    }
    copy_.resize(elements * memory.planes());
    floats_ = copy_;
    for_pieces([](std::span<float> kept, float* copied) { std::ranges::copy(kept, copied); });
  }
  std::span<float> floats() { return floats_; }
  void keep() {
    if (copy_.empty()) return;
    for_pieces([](std::span<float> kept, float* copied) {
      std::copy_n(copied, kept.size(), kept.data());
    });
  }

 private:
  template <class Copy>
  void for_pieces(const Copy& copy) {
    float* at = copy_.data();
    for (uint32_t plane = 0; plane < memory_.planes(); ++plane) {
      for (const ElementRanges::Range& piece : pieces_) {
        copy(memory_.elements(plane, piece.first, piece.elements), at);
        at += piece.elements;
      }
    }
  }

  ErrorMemory& memory_;
  const std::vector<ElementRanges::Range> pieces_;
  std::span<float> floats_;
  std::vector<float> copy_;
};

}  // namespace

CodecHop::CodecHop(CodedSum coded, std::shared_ptr<ErrorMemory> memory, ElementRanges elements,
                   uint64_t stream, uint64_t step)
    : coded_(std::move(coded)),
      memory_(std::move(memory)),
      elements_(std::move(elements)),
      stream_(stream),
      step_(step) {}

const GradientCodec& CodecHop::codec(Encoding encoding) const {
  BRAID_ASSERT(encoding != Encoding::Plain, "with a codec nothing travels plain");
  return encoding == Encoding::Part ? *coded_.part : *coded_.sum;
}

uint64_t CodecHop::encoded_bytes_max(Encoding encoding, uint64_t elements) const {
  return codec(encoding).encoded_bytes_max(elements);
}

bool CodecHop::has_exact_size() const { return coded_.part->traits().has_exact_size; }

bool CodecHop::encodes_own_part() const { return coded_.encodes_own_part; }

uint32_t CodecHop::encode(Encoding encoding, const Extent& extent, std::span<const float> values,
                          std::span<uint8_t> encoded) {
  auto pieces = elements_.of(extent.offset / sizeof(float), values.size());
  const EncodePlace place = {mix64(stream_ ^ static_cast<uint64_t>(encoding)), step_,
                             pieces.front().first};
  const bool has_memory =
      memory_ != nullptr && (encoding == Encoding::Part || coded_.sum_has_memory);
  Result<uint64_t> length = uint64_t{0};
  if (has_memory) {
    ChunkMemory memory(*memory_, std::move(pieces), values.size());
    length = codec(encoding).encode(values, memory.floats(), place, encoded);
    memory.keep();
  } else {
    length = codec(encoding).encode(values, {}, place, encoded);
  }
  BRAID_ASSERT(length.is_ok(), "the sizes fit each other");
  return static_cast<uint32_t>(*length);
}

bool CodecHop::decode(Encoding encoding, std::span<const uint8_t> encoded,
                      std::span<float> out) const {
  return codec(encoding).decode(encoded, out).is_ok();
}

bool CodecHop::decode_and_add(Encoding encoding, std::span<const uint8_t> encoded,
                              std::span<float> sum) const {
  return codec(encoding).decode_and_add(encoded, sum).is_ok();
}

}  // namespace braid
