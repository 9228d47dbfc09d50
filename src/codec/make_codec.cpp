// SPDX-License-Identifier: Apache-2.0
#include "codec/all_codecs.h"

namespace braid {
namespace {

std::unique_ptr<GradientCodec> make_checked(const CodecSpec& spec) {
  switch (spec.kind) {
    case CodecKind::None:
      return plain_codec(spec);
    case CodecKind::BFloat16:
    case CodecKind::Float16:
      return half_codec(spec);
    case CodecKind::Int8:
    case CodecKind::Int4:
    case CodecKind::Fp8E4M3:
    case CodecKind::Fp8E5M2:
    case CodecKind::Qsgd:
      return block_codec(spec);
    case CodecKind::EfSign:
    case CodecKind::OneBit:
      return sign_codec(spec);
    case CodecKind::SignVote:
      return vote_codec(spec);
    case CodecKind::TwoBit:
      return two_bit_codec(spec);
    case CodecKind::TopK:
    case CodecKind::Dgc:
      return top_codec(spec);
    case CodecKind::TernGrad:
      return terngrad_codec(spec);
    case CodecKind::Natural:
      return natural_codec(spec);
    case CodecKind::BlockSparse:
      return block_sparse_codec(spec);
  }
  return nullptr;  // check_codec_spec() knows no other kind
}

}  // namespace

Result<std::unique_ptr<GradientCodec>> make_codec(const CodecSpec& spec) {
  BRAID_RETURN_IF_ERROR(check_codec_spec(spec));
  return make_checked(spec);
}

}  // namespace braid
