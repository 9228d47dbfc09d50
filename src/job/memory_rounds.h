// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <utility>

#include "loop/timer.h"
#include "operation/result_memory.h"

namespace braid {

// Has memory for results that nobody uses any more given back to the kernel, in rounds: what was
// idle for two of them may go, see MemoryBlocks. Its timer runs while there may be some. Control
// loop only.
class MemoryRounds {
 public:
  static constexpr uint32_t kRoundMs = 5000;

  explicit MemoryRounds(Loop& loop) : timer_(loop) {}

  // To be called when results may become idle. `passed` comes after each round.
  void begin(ResultMemory& memory, std::function<void()> passed) {
    if (timer_.is_active() || !memory.may_give_back()) return;
    timer_.start_repeating(kRoundMs, [this, &memory, passed = std::move(passed)] {
      if (!memory.pass_round()) timer_.stop();
      passed();
    });
  }
  void stop() { timer_.stop(); }

 private:
  Timer timer_;
};

}  // namespace braid
