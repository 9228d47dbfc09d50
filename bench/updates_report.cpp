// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "bench/updates.h"

namespace braid::bench {
namespace {

double traffic_rate(uint64_t bytes, double seconds) {
  return seconds > 0 ? static_cast<double>(bytes) / seconds / 1e9 : 0;
}

double of_copy(const UpdateTimes& times) {
  return times.update > 0 ? times.copy / times.update : 0;
}

}  // namespace

uint64_t update_bytes(const UpdateStep& update, DataType dtype) {
  const uint64_t value = dtype == DataType::Float64 ? sizeof(double) : sizeof(float);
  return 2 * (element_bytes(dtype) + update.slots() * value);
}

std::string updates_heading(uint64_t bytes) {
  const std::string title =
      fmt::format("{} bytes of weights at their owner, GB/s of bytes read and written", bytes);
  return fmt::format("{}\n{:<14} {:<9} {:>13} {:>8} {:>8} {:>6}", title, "optimizer", "type",
                     "bytes/element", "update", "memcpy", "ratio");
}

std::string updates_row(const UpdateTimes& times) {
  return fmt::format("{:<14} {:<9} {:>13} {:>8.2f} {:>8.2f} {:>6.2f}", times.optimizer,
                     to_string(times.dtype), times.bytes / times.elements,
                     traffic_rate(times.bytes, times.update), traffic_rate(times.bytes, times.copy),
                     of_copy(times));
}

std::string updates_json(const UpdateTimes& times) {
  const nlohmann::json json = {{"optimizer", times.optimizer},
                               {"dtype", to_string(times.dtype)},
                               {"elements", times.elements},
                               {"bytes", times.bytes},
                               {"gb_per_second", traffic_rate(times.bytes, times.update)},
                               {"memcpy_gb_per_second", traffic_rate(times.bytes, times.copy)},
                               {"of_memcpy", of_copy(times)}};
  return json.dump();
}

}  // namespace braid::bench
