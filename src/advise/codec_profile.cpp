// SPDX-License-Identifier: Apache-2.0
#include "advise/codec_profile.h"

#include <algorithm>

#include "codec/coded_sum.h"
#include "codec/gradient_codec.h"

namespace braid {
namespace {

constexpr uint64_t kShareElements = 1 << 20;  // so many that a part's ends do not count
constexpr double kElementBytes = sizeof(float);
constexpr uint32_t kNibbleNodesMax = 7;  // −7 to 7, and what is not finite, in 4 bits

double part_share_of(const GradientCodec& codec, const CodecTimes& times) {
  if (!codec.traits().has_exact_size) {
    return static_cast<double>(times.encoded_bytes) / static_cast<double>(times.bytes);
  }
  return static_cast<double>(codec.encoded_bytes_max(kShareElements)) /
         (kShareElements * kElementBytes);
}

// With each k-th step in full.
double over_steps(const CodecSpec& spec, double share) {
  return spec.full_every == 0 ? share : share + (1 - share) / spec.full_every;
}

double sum_share_of(CodecKind kind, double part_share, uint32_t nodes) {
  switch (kind) {
    case CodecKind::TwoBit:  // packed counts
      return (nodes <= kNibbleNodesMax ? 0.5 : 1) / kElementBytes;
    case CodecKind::TopK:
    case CodecKind::Dgc:  // all elements that any node has sent; at most everything, as it is
      return std::min(nodes * part_share, 1.0);
    case CodecKind::None:
    case CodecKind::BFloat16:
    case CodecKind::Float16:
    case CodecKind::Int8:
    case CodecKind::Int4:
    case CodecKind::Fp8E4M3:
    case CodecKind::Fp8E5M2:
    case CodecKind::EfSign:
    case CodecKind::SignVote:
    case CodecKind::OneBit:
    case CodecKind::Qsgd:
    case CodecKind::TernGrad:
    case CodecKind::Natural:
    case CodecKind::BlockSparse:
      return part_share;
  }
  return part_share;
}

}  // namespace

double CodecProfile::coding_seconds(double bytes) const {
  CodingPoint low;
  for (const CodingPoint& high : coding) {
    if (bytes <= static_cast<double>(high.bytes)) {
      const auto width = static_cast<double>(high.bytes - low.bytes);
      return low.seconds +
             (high.seconds - low.seconds) * (bytes - static_cast<double>(low.bytes)) / width;
    }
    low = high;
  }
  return low.bytes == 0 ? 0 : low.seconds * bytes / static_cast<double>(low.bytes);
}

Status check_nodes(const CodecSpec& spec, uint32_t nodes) {
  const bool adds_integers = spec.kind == CodecKind::TwoBit || spec.kind == CodecKind::SignVote;
  if (!adds_integers || nodes <= kIntegerSumPartsMax) return Status::ok();
  return make_status(StatusCode::InvalidArgument,
                     "codec {}: {} nodes are too many; right are up to {}, whose parts it can add",
                     codec_name(spec.kind), nodes, kIntegerSumPartsMax);
}

Result<CodecProfile> profile_of(const CodecSpec& spec, std::span<const CodecTimes> times,
                                uint32_t nodes) {
  BRAID_RETURN_IF_ERROR(check_nodes(spec, nodes));
  const auto codec = make_codec(spec);
  if (!codec) return codec.status();
  const CodecTraits& traits = (*codec)->traits();
  std::vector<CodecTimes> sorted(times.begin(), times.end());
  std::ranges::sort(sorted, {}, &CodecTimes::bytes);
  CodecProfile profile;
  profile.name = to_string(spec);
  profile.is_lossless = traits.is_lossless;
  profile.slows_training =
      traits.needs_memory || traits.wants_memory || spec.kind == CodecKind::SignVote;
  profile.part_share = part_share_of(**codec, sorted.back());
  profile.sum_share = over_steps(spec, sum_share_of(spec.kind, profile.part_share, nodes));
  profile.part_share = over_steps(spec, profile.part_share);
  const auto coded = make_coded_sum(spec, nodes, 1);
  if (!coded) return coded.status();
  const double parts = coded->encodes_own_part ? 1 : (nodes - 1.0) / nodes;
  double longest = 0;
  for (const CodecTimes& one : sorted) {
    const bool with_memory = traits.needs_memory || traits.wants_memory;
    const double encode = with_memory ? one.encode_with_memory : one.encode;
    const double encode_sum = one.encode_sum == 0 ? encode : one.encode_sum;
    const double decode_sum = one.decode_sum == 0 ? one.decode : one.decode_sum;
    // A larger group never takes less, whatever was measured.
    longest =
        std::max(longest, parts * (encode + one.decode_and_add) + encode_sum / nodes + decode_sum);
    if (!profile.coding.empty() && profile.coding.back().bytes == one.bytes) {
      profile.coding.back().seconds = longest;
    } else {
      profile.coding.push_back({one.bytes, longest});
    }
  }
  return profile;
}

}  // namespace braid
