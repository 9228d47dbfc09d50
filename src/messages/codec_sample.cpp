// SPDX-License-Identifier: Apache-2.0
#include "messages/codec_sample.h"

#include <algorithm>
#include <cmath>

#include "messages/control_buffer.h"

namespace braid {
namespace {

constexpr uint64_t kElementsMax = kSetBytesMax / sizeof(float);

bool is_sum_of_squares(double value) { return std::isfinite(value) && value >= 0; }

// False: it is no sketch.
bool read_sketch(const flatbuffers::Vector<double>& message, CodecLoss::Sketch& sketch) {
  if (message.size() != sketch.size()) return false;
  for (uint32_t i = 0; i < message.size(); ++i) {
    sketch[i] = message.Get(i);
    if (!std::isfinite(sketch[i])) return false;
  }
  return true;
}

}  // namespace

// Squares that are not finite come from elements that are not, which the message counts.
ControlBuffer make_codec_sample(const CodecSample& sample) {
  ControlBuffer builder;
  const CodecLoss& loss = sample.loss;
  const bool is_finite = loss.not_finite == 0 && is_sum_of_squares(loss.given_squares) &&
                         is_sum_of_squares(loss.memory_squares);
  const auto tensors = builder.CreateVector(sample.tensors);
  const auto codec = builder.CreateString(to_string(sample.codec));
  flatbuffers::Offset<flatbuffers::Vector<double>> error, decoded;
  if (is_finite && loss.has_sketches) {
    error = builder.CreateVector(loss.error.data(), loss.error.size());
    decoded = builder.CreateVector(loss.decoded.data(), loss.decoded.size());
  }
  const auto body = proto::CreateCodecSample(
      builder, sample.job_key, sample.set, sample.plan, sample.step, tensors, codec,
      is_finite ? loss.given_squares : 0, is_finite ? loss.memory_squares : 0, loss.elements,
      loss.saturated, is_finite ? 0 : std::max<uint64_t>(1, loss.not_finite), error, decoded);
  return finish_control_message(std::move(builder), body);
}

Result<CodecSample> parse_codec_sample(const proto::CodecSample& message) {
  const auto wrong = [](const char* what) {
    return make_status(StatusCode::Protocol, "a sample of what a codec loses has {}", what);
  };
  CodecSample sample;
  sample.job_key = message.job_key();
  sample.set = message.set();
  sample.plan = message.plan();
  sample.step = message.step();
  sample.tensors.assign(message.tensors()->begin(), message.tensors()->end());
  if (sample.step > kStepNumberMax) return wrong("a step that cannot be");
  if (sample.tensors.empty()) return wrong("no tensors");
  const auto codec = parse_codec_spec(message.codec()->string_view());
  if (!codec || codec->kind == CodecKind::None) return wrong("no codec");
  sample.codec = *codec;
  CodecLoss& loss = sample.loss;
  loss.given_squares = message.given_squares();
  loss.memory_squares = message.memory_squares();
  if (!is_sum_of_squares(loss.given_squares) || !is_sum_of_squares(loss.memory_squares))
    return wrong("squares that cannot be");
  loss.elements = message.elements();
  loss.saturated = message.saturated();
  loss.not_finite = message.not_finite();
  // Those of all nodes are added up.
  if (loss.elements > kElementsMax || loss.not_finite > kElementsMax)
    return wrong("more elements than a set may have");
  if (loss.saturated > loss.elements) return wrong("more saturated elements than there are");
  loss.has_sketches = message.error() != nullptr && message.decoded() != nullptr;
  if (loss.has_sketches && (!read_sketch(*message.error(), loss.error) ||
                            !read_sketch(*message.decoded(), loss.decoded)))
    return wrong("sketches that cannot be");
  return sample;
}

}  // namespace braid
