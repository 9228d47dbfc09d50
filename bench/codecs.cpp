// SPDX-License-Identifier: Apache-2.0
#include "bench/codecs.h"

#include <cstdio>
#include <cstring>

#include <hwy/targets.h>

#include "codec/codec_spec.h"
#include "engine/reduce_kernels.h"

namespace braid::bench {
namespace {

// Lets kernels use the vectors of this name only: widest, avx2 or baseline.
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

class CodecsBench {
 public:
  explicit CodecsBench(const CodecsOptions& options)
      : options_(options),
        gradient_(make_gradient(options.bytes / sizeof(float))),
        sums_(gradient_.size()),
        timer_{thread_cpu_clock, options.repeats} {}

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
      const auto times = measure_codec(spec, gradient_, sums_, timer_, options_.nodes);
      if (!times) return times.status();
      print(options_.as_json ? codecs_json(*times, memory) : codecs_row(*times));
    }
    return Status::ok();
  }

 private:
  static void print(const std::string& line) {
    std::printf("%s\n", line.c_str());
    std::fflush(stdout);
  }

  MemoryTimes measure_memory() {
    const auto* const from = reinterpret_cast<const uint8_t*>(gradient_.data());
    auto* const to = reinterpret_cast<uint8_t*>(sums_.data());
    const std::vector<const uint8_t*> operands = {to, from};
    MemoryTimes times;
    times.copy =
        timer_.fastest_seconds([&] { std::memcpy(to, from, gradient_.size() * sizeof(float)); });
    times.add = timer_.fastest_seconds(
        [&] { reduce_all(DataType::Float32, Reduction::Sum, operands, gradient_.size(), to); });
    return times;
  }

  const CodecsOptions& options_;
  const std::vector<float> gradient_;
  std::vector<float> sums_;
  const PassTimer timer_;
};

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
