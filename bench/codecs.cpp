// SPDX-License-Identifier: Apache-2.0
#include "bench/codecs.h"

#include <cstdio>
#include <cstring>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "codec/codec_spec.h"
#include "engine/reduce_kernels.h"

namespace braid::bench {
namespace {

double gigabytes_per_second(uint64_t bytes, double seconds) {
  return seconds > 0 ? static_cast<double>(bytes) / seconds / 1e9 : 0;
}

std::string rate(uint64_t bytes, double seconds) {
  return seconds > 0 ? fmt::format("{:.2f}", gigabytes_per_second(bytes, seconds)) : "-";
}

double share(double of, double seconds) { return seconds > 0 ? of / seconds : 0; }

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

std::string codecs_heading(uint64_t bytes, const MemoryTimes& memory) {
  const std::string title = fmt::format("{} bytes of float32, GB/s of them: memcpy {}, add {}",
                                        bytes, rate(bytes, memory.copy), rate(bytes, memory.add));
  return fmt::format("{}\n{:<34} {:>8} {:>8} {:>8} {:>8} {:>8}", title, "codec", "size", "encode",
                     "+ memory", "decode", "+ add");
}

std::string codecs_row(const CodecTimes& times) {
  const double size = static_cast<double>(times.encoded_bytes) / static_cast<double>(times.bytes);
  return fmt::format("{:<34} {:>7.2f}% {:>8} {:>8} {:>8} {:>8}", times.codec, size * 100,
                     rate(times.bytes, times.encode), rate(times.bytes, times.encode_with_memory),
                     rate(times.bytes, times.decode), rate(times.bytes, times.decode_and_add));
}

std::string codecs_json(const CodecTimes& times, const MemoryTimes& memory) {
  const auto figures = [&](double seconds) {
    return nlohmann::json{{"gb_per_second", gigabytes_per_second(times.bytes, seconds)},
                          {"of_memcpy", share(memory.copy, seconds)},
                          {"of_add", share(memory.add, seconds)}};
  };
  nlohmann::json json = {{"codec", times.codec},
                         {"bytes", times.bytes},
                         {"encoded_bytes", times.encoded_bytes},
                         {"memcpy_gb_per_second", gigabytes_per_second(times.bytes, memory.copy)},
                         {"add_gb_per_second", gigabytes_per_second(times.bytes, memory.add)},
                         {"encode", figures(times.encode)},
                         {"encode_with_memory", figures(times.encode_with_memory)},
                         {"decode", figures(times.decode)},
                         {"decode_and_add", figures(times.decode_and_add)}};
  if (times.encode_sum != 0) json["encode_sum"] = figures(times.encode_sum);
  if (times.decode_sum != 0) json["decode_sum"] = figures(times.decode_sum);
  return json.dump();
}

Status run_codecs(const CodecsOptions& options) {
  if (options.bytes == 0 || options.bytes % sizeof(float) != 0) {
    return make_status(StatusCode::InvalidArgument,
                       "--bytes: {} is not a multiple of the 4 bytes of a float32, above 0",
                       options.bytes);
  }
  return CodecsBench(options).run();
}

}  // namespace braid::bench
