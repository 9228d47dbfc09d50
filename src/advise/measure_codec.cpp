// SPDX-License-Identifier: Apache-2.0
#include "advise/measure_codec.h"

#include <algorithm>

#include <time.h>

#include "base/hash.h"
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

Result<CodecTimes> measure_codec(const CodecSpec& spec, std::span<const float> gradient,
                                 std::span<float> sums, const PassTimer& timer) {
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
  return times;
}

}  // namespace braid
