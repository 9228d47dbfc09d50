// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "codec/codec_loss.h"
#include "codec/codec_spec.h"
#include "messages/control_messages.h"
#include "proto/control_generated.h"

namespace braid {

// What one node has measured of an operation in a step that is sampled: see proto/control.fbs.
struct CodecSample {
  uint64_t job_key = 0;
  uint64_t set = 0;
  uint32_t plan = 0;
  uint64_t step = 0;
  std::vector<uint64_t> tensors;  // hashes, in the group's order; not empty
  CodecSpec codec;                // not `none`
  CodecLoss loss;
};

ControlBuffer make_codec_sample(const CodecSample& sample);
// PROTOCOL: no tensors, no codec that there is, numbers that are not finite or cannot be, sketches
// of another size.
Result<CodecSample> parse_codec_sample(const proto::CodecSample& message);

}  // namespace braid
