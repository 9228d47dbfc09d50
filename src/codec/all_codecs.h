// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>

#include "codec/gradient_codec.h"

namespace braid {

// One for each file of codecs; make_codec() chooses and has checked the spec. The formats stand in
// proto/SPEC.md, "Encoded parts".

// none: float32 as it is.
std::unique_ptr<GradientCodec> plain_codec(const CodecSpec& spec);
// bf16, fp16.
std::unique_ptr<GradientCodec> half_codec(const CodecSpec& spec);
// int8, int4, fp8-e4m3, fp8-e5m2, qsgd.
std::unique_ptr<GradientCodec> block_codec(const CodecSpec& spec);
// ef-sign, 1bit.
std::unique_ptr<GradientCodec> sign_codec(const CodecSpec& spec);
// sign-vote.
std::unique_ptr<GradientCodec> vote_codec(const CodecSpec& spec);
// 2bit.
std::unique_ptr<GradientCodec> two_bit_codec(const CodecSpec& spec);
// What the sum of 2bit's parts of so many nodes is encoded with: exact multiples of the spec's
// threshold. 1 to kIntegerSumPartsMax parts.
std::unique_ptr<GradientCodec> counts_codec(const CodecSpec& spec, uint32_t parts);
// terngrad.
std::unique_ptr<GradientCodec> terngrad_codec(const CodecSpec& spec);
// topk, dgc. `parts`: it keeps so many times as many elements, of the sum of so many parts all.
std::unique_ptr<GradientCodec> top_codec(const CodecSpec& spec, uint32_t parts = 1);
// natural.
std::unique_ptr<GradientCodec> natural_codec(const CodecSpec& spec);
// block-sparse.
std::unique_ptr<GradientCodec> block_sparse_codec(const CodecSpec& spec);

}  // namespace braid
