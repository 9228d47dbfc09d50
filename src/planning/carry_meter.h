// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>

namespace braid {

// What the daemon has done since it began: a snapshot.
struct CarriedWork {
  uint64_t processor_ns = 0;  // of all its threads, without polling
  uint64_t bytes = 0;         // of collectives among nodes: EngineCounters::bytes_carried
};

// What a byte costs the daemon's processors, window by window. Control loop only.
class CarryMeter {
 public:
  static constexpr size_t kWindowsKept = 16;
  // Windows in which less was carried are not kept: other work counts too much in them.
  static constexpr uint64_t kBytesMin = 1 << 20;

  // Ends a window, and begins the next one.
  void note(const CarriedWork& work);
  // The median; 0: nothing was measured.
  double seconds_per_byte() const;

 private:
  bool has_begun_ = false;
  CarriedWork last_;
  std::deque<double> windows_;
};

}  // namespace braid
