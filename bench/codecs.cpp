// SPDX-License-Identifier: Apache-2.0
#include "bench/codecs.h"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <span>

#include <hwy/targets.h>

#include "base/hash.h"
#include "bench/cpu_time.h"
#include "codec/gradient_codec.h"
#include "collective/reduce_kernels.h"

namespace braid::bench {
namespace {

// Like gradients: normal, the sum of what is uniform (Irwin and Hall), around 0.
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

class CodecsBench {
 public:
  explicit CodecsBench(const CodecsOptions& options)
      : options_(options),
        gradient_(make_gradient(options.bytes / sizeof(float))),
        sums_(gradient_.size()) {}

  Status run() {
    std::vector<CodecSpec> specs;
    for (const std::string& text : options_.codecs) {
      const auto spec = parse_codec_spec(text);
      if (!spec) return spec.status();
      specs.push_back(*spec);
    }
    for (uint8_t kind = 0; options_.codecs.empty() && kind < kCodecKindCount; ++kind) {
      specs.push_back(default_codec_spec(static_cast<CodecKind>(kind)));
    }
    const MemoryTimes memory = measure_memory();
    if (!options_.as_json) print(codecs_heading(options_.bytes, memory));
    for (const CodecSpec& spec : specs) {
      CodecTimes times;
      BRAID_RETURN_IF_ERROR(measure_codec(spec, times));
      print(options_.as_json ? codecs_json(times, memory) : codecs_row(times));
    }
    return Status::ok();
  }

 private:
  static void print(const std::string& line) {
    std::printf("%s\n", line.c_str());
    std::fflush(stdout);
  }

  // Of this thread's own time, and the fastest pass: what others take of the core does not count,
  // and what they take of the memory as little as can be. The first pass, which meets new memory,
  // is left out.
  template <class Pass>
  double time(const Pass& pass) {
    std::vector<double> seconds;
    pass();
    for (uint32_t i = 0; i < options_.repeats; ++i) {
      const double begin = thread_cpu_seconds();
      pass();
      seconds.push_back(thread_cpu_seconds() - begin);
    }
    return *std::min_element(seconds.begin(), seconds.end());
  }

  MemoryTimes measure_memory() {
    const auto* const from = reinterpret_cast<const uint8_t*>(gradient_.data());
    auto* const to = reinterpret_cast<uint8_t*>(sums_.data());
    const std::vector<const uint8_t*> operands = {to, from};
    MemoryTimes times;
    times.copy = time([&] { std::memcpy(to, from, gradient_.size() * sizeof(float)); });
    times.add = time(
        [&] { reduce_all(DataType::Float32, Reduction::Sum, operands, gradient_.size(), to); });
    return times;
  }

  Status measure_codec(const CodecSpec& spec, CodecTimes& times) {
    const auto codec = make_codec(spec);
    if (!codec) return codec.status();
    const GradientCodec& it = **codec;
    std::vector<uint8_t> encoded(it.encoded_bytes_max(gradient_.size()));
    std::vector<float> memory(gradient_.size() * it.traits().memory_floats);
    Status status;
    EncodePlace place;
    const auto encode = [&](std::span<float> with) {
      ++place.step;
      const auto length = it.encode(gradient_, with, place, encoded);
      if (length) {
        times.encoded_bytes = *length;
      } else {
        status = length.status();
      }
    };
    times.codec = to_string(spec);
    times.bytes = options_.bytes;
    if (!it.traits().needs_memory) times.encode = time([&] { encode({}); });
    times.encode_with_memory = time([&] { encode(memory); });
    encoded.resize(times.encoded_bytes);
    times.decode = time([&] { status = it.decode(encoded, sums_); });
    times.decode_and_add = time([&] { status = it.decode_and_add(encoded, sums_); });
    return status;
  }

  const CodecsOptions& options_;
  const std::vector<float> gradient_;
  std::vector<float> sums_;
};

Status choose_vectors(const std::string& vectors) {
#if HWY_ARCH_X86
  if (vectors == "avx2") {
    hwy::DisableTargets(HWY_AVX3 | HWY_AVX3_DL);
  } else if (vectors == "baseline") {
    hwy::DisableTargets(HWY_AVX3 | HWY_AVX3_DL | HWY_AVX2 | HWY_SSE4 | HWY_SSSE3);
  }
#endif
  hwy::GetChosenTarget().Update(hwy::SupportedTargets());
  if (vectors == "widest" || vectors == "avx2" || vectors == "baseline") return Status::ok();
  return make_status(StatusCode::InvalidArgument,
                     "--vectors: '{}': right is widest, avx2 or baseline", vectors);
}

}  // namespace

Status run_codecs(const CodecsOptions& options) {
  if (options.bytes == 0 || options.bytes % sizeof(float) != 0) {
    return make_status(StatusCode::InvalidArgument,
                       "--bytes: {} is not a multiple of the 4 bytes of a float32, above 0",
                       options.bytes);
  }
  BRAID_RETURN_IF_ERROR(choose_vectors(options.vectors));
  return CodecsBench(options).run();
}

}  // namespace braid::bench
