// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "bench/codecs.h"

namespace braid::bench {
namespace {

double gigabytes_per_second(uint64_t bytes, double seconds) {
  return seconds > 0 ? static_cast<double>(bytes) / seconds / 1e9 : 0;
}

std::string rate(uint64_t bytes, double seconds) {
  return seconds > 0 ? fmt::format("{:.2f}", gigabytes_per_second(bytes, seconds)) : "-";
}

double share(double of, double seconds) { return seconds > 0 ? of / seconds : 0; }

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

}  // namespace braid::bench
