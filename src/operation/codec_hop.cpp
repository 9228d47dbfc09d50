// SPDX-License-Identifier: Apache-2.0
#include "operation/codec_hop.h"

#include <algorithm>
#include <optional>

#include "base/assert.h"
#include "base/hash.h"

namespace braid {
namespace {

// The memory of a chunk as codecs want it: its planes one after the other, each in one piece. What
// is only read is always a copy.
class ChunkMemory {
 public:
  ChunkMemory(ErrorMemory& memory, const ElementRanges::Pieces& pieces, uint64_t elements,
              ErrorUse use)
      : memory_(memory), pieces_(pieces), use_(use) {
    if (pieces_.is_one() && memory.planes() == 1 && use == ErrorUse::Renew) {
      floats_ = memory.elements(0, (*pieces_).first, elements);
      return;
    }
    copy_.resize(elements * memory.planes());
    floats_ = copy_;
    for_pieces([](std::span<float> kept, float* copied) { std::ranges::copy(kept, copied); });
  }
  std::span<float> floats() { return floats_; }
  void keep() {
    if (copy_.empty() || use_ == ErrorUse::Read) return;
    for_pieces([](std::span<float> kept, float* copied) {
      std::copy_n(copied, kept.size(), kept.data());
    });
  }

 private:
  template <class Copy>
  void for_pieces(const Copy& copy) {
    float* at = copy_.data();
    for (uint32_t plane = 0; plane < memory_.planes(); ++plane) {
      for (const ElementRanges::Range piece : pieces_) {
        copy(memory_.elements(plane, piece.first, piece.elements), at);
        at += piece.elements;
      }
    }
  }

  ErrorMemory& memory_;
  const ElementRanges::Pieces pieces_;
  const ErrorUse use_;
  std::span<float> floats_;
  std::vector<float> copy_;
};

constexpr uint64_t kMeasuredMax = 1 << 18;  // about so many elements of an operation
constexpr uint64_t kSliceElements = 4096;

// Elements that are measured: from number `at` of the chunk on, and from `first` of the set on.
struct MeasuredPiece {
  uint64_t first = 0;
  uint64_t at = 0;
  uint64_t elements = 0;
};

// One in `stride` of the set's slices. Their places alone decide which, so all nodes measure the
// same elements, as parts and as sums.
std::vector<MeasuredPiece> measured_pieces(const ElementRanges::Pieces& pieces, uint64_t stride) {
  std::vector<MeasuredPiece> measured;
  uint64_t at = 0;
  for (const ElementRanges::Range piece : pieces) {
    const uint64_t end = piece.first + piece.elements;
    for (uint64_t first = piece.first; first < end;) {
      const uint64_t slice = first / kSliceElements;
      const uint64_t elements = std::min(end, (slice + 1) * kSliceElements) - first;
      if (mix64(slice) % stride == 0) measured.push_back({first, at, elements});
      first += elements;
      at += elements;
    }
  }
  return measured;
}

uint64_t stride_of(const ElementRanges& elements) {
  uint64_t count = 0;
  for (const ElementRanges::Range& range : elements.ranges) count += range.elements;
  return std::max<uint64_t>(1, count / kMeasuredMax);
}

}  // namespace

CodecHop::CodecHop(CodedSum coded, std::shared_ptr<ErrorMemory> memory, ElementRanges elements,
                   uint64_t stream, uint64_t step, std::shared_ptr<CodecGauge> gauge, ErrorUse use)
    : coded_(std::move(coded)),
      memory_(std::move(memory)),
      elements_(std::move(elements)),
      stream_(stream),
      step_(step),
      gauge_(std::move(gauge)),
      use_(use),
      measured_stride_(gauge_ == nullptr ? 1 : stride_of(elements_)) {}

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
  const auto pieces = elements_.of(extent.offset / sizeof(float), values.size());
  const EncodePlace place = {mix64(stream_ ^ static_cast<uint64_t>(encoding)), step_,
                             (*pieces).first};
  const bool has_memory =
      memory_ != nullptr && (encoding == Encoding::Part || coded_.sum_has_memory);
  std::optional<ChunkMemory> memory;
  if (has_memory) memory.emplace(*memory_, pieces, values.size(), use_);
  const std::span<float> kept = memory ? memory->floats() : std::span<float>{};
  const Result<uint64_t> length = codec(encoding).encode(values, kept, place, encoded);
  if (memory) memory->keep();
  BRAID_ASSERT(length.is_ok(), "the sizes fit each other");
  if (gauge_ != nullptr) measure(encoding, pieces, values, kept, encoded.first(*length));
  return static_cast<uint32_t>(*length);
}

void CodecHop::measure(Encoding encoding, const ElementRanges::Pieces& pieces,
                       std::span<const float> values, std::span<const float> kept,
                       std::span<const uint8_t> encoded) {
  const std::vector<MeasuredPiece> measured = measured_pieces(pieces, measured_stride_);
  if (measured.empty()) return;
  std::vector<float> decoded(values.size());
  const bool is_decoded = decode(encoding, encoded, decoded);
  BRAID_ASSERT(is_decoded, "a hop decodes what it has encoded");
  const CodecSpec& spec = coded_.part->spec();
  EncodedElements chunk;
  chunk.is_part = encoding == Encoding::Part;
  // A sum that is encoded here by the other of its two codecs is exact.
  chunk.is_exact = !chunk.is_part && coded_.sum != coded_.part;
  chunk.is_final = gauge_->is_final(encoding);
  if (spec.kind == CodecKind::TwoBit) chunk.threshold = spec.threshold;
  // The last plane holds what was not sent; the one before it, if any, is momentum.
  if (!kept.empty()) kept = kept.last(values.size());
  CodecLoss loss;
  for (const MeasuredPiece& piece : measured) {
    chunk.first_element = piece.first;
    chunk.given = values.subspan(piece.at, piece.elements);
    if (!kept.empty()) chunk.kept = kept.subspan(piece.at, piece.elements);
    chunk.decoded = std::span<const float>(decoded).subspan(piece.at, piece.elements);
    measure_loss(chunk, loss);
  }
  gauge_->add(loss);
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
