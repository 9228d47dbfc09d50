// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "base/clock.h"
#include "loop/loop.h"
#include "loop/timer.h"

namespace braid {

// Tells the service manager ($NOTIFY_SOCKET) that the daemon is ready, what it does, and that it
// stops: what `systemctl status` shows. Without a service manager it does nothing. Its timer runs
// only while bytes are sent, or once after something has changed. Control loop only.
class ServiceStatus {
 public:
  static constexpr uint64_t kPeriodMs = 5000;  // a text stands for so long at least

  struct Numbers {
    size_t jobs_running = 0;
    size_t jobs_forming = 0;
    uint64_t flows_open = 0;
    uint64_t flows_failed = 0;
    uint64_t bytes_sent = 0;
    bool operator==(const Numbers&) const = default;
  };

  ServiceStatus(Loop& loop, const Clock& clock, std::function<Numbers()> numbers);

  void tell_ready();
  // To be called whenever the loop is about to sleep: what has changed is told soon.
  void note();
  // From now on it says how many jobs the daemon waits for, and how long.
  void tell_stopping(uint32_t timeout_ms);

 private:
  void look();
  void count_down();
  void tell(const std::string& text, const char* state = "");
  std::string text_of(const Numbers& numbers, double bytes_per_second) const;

  const Clock& clock_;
  const std::function<Numbers()> numbers_;
  const bool is_heard_;
  bool is_ready_ = false;
  uint64_t stops_at_ms_ = 0;  // 0: it does not stop
  Numbers told_;
  std::string told_text_;
  uint64_t told_ms_ = 0;
  Timer timer_;
};

}  // namespace braid
