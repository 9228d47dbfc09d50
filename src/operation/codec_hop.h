// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "codec/coded_sum.h"
#include "engine/element_ranges.h"
#include "engine/hop.h"
#include "operation/codec_gauge.h"
#include "operation/error_memory.h"

namespace braid {

// Tensors of one set that travel with one codec.
struct CodedTensors {
  CodedSum sum;
  CodedSum average;                     // the same codec
  std::shared_ptr<ErrorMemory> memory;  // of all their elements; nullptr: the codec needs none
};

// Whether what an operation loses replaces what was lost before it, or is forgotten.
enum class ErrorUse : uint8_t { Renew, Read };

// One operation's codec: each chunk is a part of its own. `elements` says which elements of the
// memory the operation holds, in its order.
class CodecHop final : public Hop {
 public:
  // `stream` tells operations and nodes apart where rounding is random. `gauge`: of a step that is
  // sampled; nullptr: nothing is measured.
  CodecHop(CodedSum coded, std::shared_ptr<ErrorMemory> memory, ElementRanges elements,
           uint64_t stream, uint64_t step, std::shared_ptr<CodecGauge> gauge = nullptr,
           ErrorUse use = ErrorUse::Renew);

  uint64_t encoded_bytes_max(Encoding encoding, uint64_t elements) const override;
  bool has_exact_size() const override;
  bool encodes_own_part() const override;
  uint32_t encode(Encoding encoding, const Extent& extent, std::span<const float> values,
                  std::span<uint8_t> encoded) override;
  bool decode(Encoding encoding, std::span<const uint8_t> encoded,
              std::span<float> out) const override;
  bool decode_and_add(Encoding encoding, std::span<const uint8_t> encoded,
                      std::span<float> sum) const override;

 private:
  const GradientCodec& codec(Encoding encoding) const;
  void measure(Encoding encoding, const ElementRanges::Pieces& pieces,
               std::span<const float> values, std::span<const float> kept,
               std::span<const uint8_t> encoded);

  const CodedSum coded_;
  const std::shared_ptr<ErrorMemory> memory_;
  const ElementRanges elements_;
  const uint64_t stream_;
  const uint64_t step_;
  const std::shared_ptr<CodecGauge> gauge_;
  const ErrorUse use_;
  const uint64_t measured_stride_;
};

}  // namespace braid
