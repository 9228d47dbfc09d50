// SPDX-License-Identifier: Apache-2.0
#include "advise/measure_codec.h"

#include <algorithm>

#include <time.h>

#include "base/hash.h"
#include "codec/coded_sum.h"
#include "codec/gradient_codec.h"

namespace braid {

double PassTimer::fastest_seconds(const std::function<void()>& pass) const {
  pass();
  double fastest = std::numeric_limits<double>::infinity();
  double spent = 0;
  for (uint32_t i = 0; i == 0 || (i < repeats && spent < budget_seconds); ++i) {
    const double begin = clock();
    pass();
    const double seconds = clock() - begin;
    fastest = std::min(fastest, seconds);
    spent += seconds;
  }
  return fastest;
}

double thread_cpu_clock() {
  timespec t{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_nsec) / 1e9;
}

std::vector<float> make_gradient(uint64_t count) {
  constexpr double kUnit = 0x1p-16;
  std::vector<float> gradient(count);
  for (uint64_t i = 0; i < count; ++i) {
    double sum = 0;
    for (uint64_t draw = 0; draw < 3; ++draw) {
      for (uint64_t bits = mix64(3 * i + draw + 1); bits != 0; bits >>= 16) {
        sum += static_cast<double>(bits & 0xffff) * kUnit - 0.5;
      }
    }
    gradient[i] = static_cast<float>(0.01 * sum);
  }
  return gradient;
}

namespace {

// Adds up what the nodes' parts decode to: each node has the same gradient, turned a little.
Status add_parts(const GradientCodec& part, std::span<const float> gradient, uint32_t nodes,
                 std::span<float> sums) {
  const size_t turn = gradient.size() / nodes;
  std::vector<float> turned(gradient.begin(), gradient.end());
  std::vector<float> memory(gradient.size() * part.traits().memory_floats);
  std::vector<uint8_t> encoded(part.encoded_bytes_max(gradient.size()));
  std::ranges::fill(sums, 0.0f);
  for (uint32_t node = 0; node < nodes; ++node) {
    std::ranges::fill(memory, 0.0f);
    const auto length = part.encode(turned, memory, {}, encoded);
    if (!length) return length.status();
    BRAID_RETURN_IF_ERROR(part.decode_and_add(std::span(encoded).first(*length), sums));
    std::rotate(turned.begin(), turned.begin() + static_cast<std::ptrdiff_t>(turn), turned.end());
  }
  return Status::ok();
}

// Where sums are encoded by another codec than parts.
Status measure_sum(const CodedSum& coded, std::span<const float> gradient, std::span<float> sums,
                   const PassTimer& timer, uint32_t nodes, CodecTimes& times) {
  if (coded.sum == coded.part) return Status::ok();
  BRAID_RETURN_IF_ERROR(add_parts(*coded.part, gradient, nodes, sums));
  std::vector<uint8_t> encoded(coded.sum->encoded_bytes_max(sums.size()));
  Result<uint64_t> length = uint64_t{0};
  times.encode_sum =
      timer.fastest_seconds([&] { length = coded.sum->encode(sums, {}, {}, encoded); });
  if (!length) return length.status();
  encoded.resize(*length);
  Status status;
  times.decode_sum = timer.fastest_seconds([&] { status = coded.sum->decode(encoded, sums); });
  return status;
}

}  // namespace

Result<CodecTimes> measure_codec(const CodecSpec& spec, std::span<const float> gradient,
                                 std::span<float> sums, const PassTimer& timer, uint32_t nodes) {
  const auto codec = make_codec(spec);
  if (!codec) return codec.status();
  const GradientCodec& it = **codec;
  std::vector<uint8_t> encoded(it.encoded_bytes_max(gradient.size()));
  std::vector<float> memory(gradient.size() * it.traits().memory_floats);
  CodecTimes times;
  Status status;  // the first error
  EncodePlace place;
  const auto note = [&status](const Status& outcome) {
    if (status) status = outcome;
  };
  const auto encode = [&](std::span<float> with) {
    ++place.step;
    const auto length = it.encode(gradient, with, place, encoded);
    if (length) {
      times.encoded_bytes = *length;
    } else {
      note(length.status());
    }
  };
  times.codec = to_string(spec);
  times.bytes = gradient.size_bytes();
  if (!it.traits().needs_memory) times.encode = timer.fastest_seconds([&] { encode({}); });
  times.encode_with_memory = timer.fastest_seconds([&] { encode(memory); });
  encoded.resize(times.encoded_bytes);
  times.decode = timer.fastest_seconds([&] { note(it.decode(encoded, sums)); });
  times.decode_and_add = timer.fastest_seconds([&] { note(it.decode_and_add(encoded, sums)); });
  if (!status) return status;
  if (nodes == 0 || spec.kind == CodecKind::None) return times;
  const uint32_t parts = std::min(nodes, kSumPartsMax);
  const auto coded = make_coded_sum(spec, parts, 1);
  if (!coded) return coded.status();
  BRAID_RETURN_IF_ERROR(measure_sum(*coded, gradient, sums, timer, parts, times));
  return times;
}

}  // namespace braid
