// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "advise/measure_codec.h"
#include "base/status.h"
#include "codec/codec_spec.h"

namespace braid {

// What one node's coding of one group takes on one core.
struct CodingPoint {
  uint64_t bytes = 0;  // of the group's float32
  double seconds = 0;
};

// A codec as the advice sees it, among a certain number of nodes. The default is no codec.
struct CodecProfile {
  std::string name = "none";
  bool is_lossless = true;
  bool slows_training = false;  // it is known to need more steps: signs, or few elements
  double part_share = 1;        // encoded bytes of a part for each of its plain ones
  double sum_share = 1;         // the same of an owner's sum
  // By size, neither bytes nor seconds ever less than before. Between two points the time is on a
  // straight line, as below the first one, from nothing; beyond the last one the rate stays.
  std::vector<CodingPoint> coding;

  // The bytes that go over the wire, as a share of the plain bytes.
  double wire_share() const { return (part_share + sum_share) / 2; }
  double coding_seconds(double bytes) const;
};

// INVALID_ARGUMENT: more nodes than encoded parts can be added up as integers.
Status check_nodes(const CodecSpec& spec, uint32_t nodes);

// `times`: of this codec, of one size or several, in any order; at least one. Of E elements each
// node encodes the E·(n−1)/n that others own, and decodes and adds as many: n−1 parts of the E/n
// that it owns. Where it encodes its own part, too (CodedSum), both are E. It encodes the sum of
// its E/n, and decodes the sums of all E. Codecs that training suffers from without error memory
// are taken with it.
Result<CodecProfile> profile_of(const CodecSpec& spec, std::span<const CodecTimes> times,
                                uint32_t nodes);

}  // namespace braid
