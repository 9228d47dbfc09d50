// SPDX-License-Identifier: Apache-2.0
#include "codec/coded_sum.h"

#include "codec/all_codecs.h"

namespace braid {
namespace {

std::shared_ptr<const GradientCodec> sum_codec(const CodecSpec& spec, uint32_t nodes) {
  if (spec.kind == CodecKind::TopK || spec.kind == CodecKind::Dgc) return top_codec(spec, nodes);
  if (nodes <= kIntegerSumPartsMax) return counts_codec(spec, nodes);
  return plain_codec(default_codec_spec(CodecKind::None));
}

}  // namespace

CodedSum CodedSum::of_step(uint64_t step) const {
  if (full == nullptr || (step + 1) % part->spec().full_every != 0) return *this;
  CodedSum coded;
  coded.part = coded.sum = full;
  return coded;
}

CodedSum with_weights(const CodedSum* parts, bool is_rounded) {
  static const std::shared_ptr<const GradientCodec> plain =
      plain_codec(default_codec_spec(CodecKind::None));
  static const std::shared_ptr<const GradientCodec> rounded =
      make_codec(default_codec_spec(CodecKind::BFloat16)).value();
  CodedSum coded;
  coded.part = plain;
  if (parts != nullptr) coded = *parts;
  coded.sum = is_rounded ? rounded : plain;
  coded.sum_has_memory = false;
  return coded;
}

Result<CodedSum> make_coded_sum(const CodecSpec& spec, uint32_t nodes, uint32_t divisor) {
  CodecSpec own = spec;
  if (own.kind == CodecKind::TwoBit) own.threshold /= static_cast<float>(divisor);
  auto part = make_codec(own);
  if (!part) return part.status();
  CodedSum coded;
  coded.part = std::move(*part);
  const CodecTraits& traits = coded.part->traits();
  if (traits.needs_memory || traits.wants_memory) coded.memory_floats = traits.memory_floats;
  if (own.full_every != 0) coded.full = plain_codec(default_codec_spec(CodecKind::None));
  switch (own.kind) {
    case CodecKind::TwoBit:
    case CodecKind::TopK:
    case CodecKind::Dgc:
      coded.encodes_own_part = true;
      coded.sum = sum_codec(own, nodes);
      break;
    case CodecKind::SignVote:
      coded.encodes_own_part = true;
      coded.sum = coded.part;
      break;
    default:
      coded.sum = coded.part;
      coded.sum_has_memory = coded.memory_floats != 0;
  }
  return coded;
}

}  // namespace braid
