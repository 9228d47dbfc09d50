// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "base/clock.h"
#include "web/web_messages.h"

namespace braid {

// Answers that many may ask for at once: each is made once for all who ask meanwhile, by the first
// of them, and holds for a while. So however many pages are open, each answer is made about once in
// that time, and there is a limit to how many different ones are. Any thread.
class SharedAnswers {
 public:
  static constexpr size_t kAnswersMax = 64;  // that hold, or are being made
  static constexpr uint32_t kWaitMs = 4000;  // for another one to make it

  // `askers_max`: threads that make an answer or wait for one.
  SharedAnswers(const Clock& clock, uint32_t fresh_ms, uint32_t askers_max)
      : clock_(clock), fresh_ns_(uint64_t{fresh_ms} * 1'000'000), askers_max_(askers_max) {}

  // `make` is called by this thread or by none. 503: too many ask, or too many different things.
  WebReply ask(const std::string& key, const std::function<WebReply()>& make);

 private:
  struct Entry {
    std::optional<WebReply> reply;  // nothing: it is being made
    uint64_t made_ns = 0;
  };
  class Asker;

  void forget_stale();
  WebReply wait_for(std::unique_lock<std::mutex>& lock, const std::shared_ptr<Entry>& entry);

  const Clock& clock_;
  const uint64_t fresh_ns_;
  const uint32_t askers_max_;
  std::mutex mutex_;
  std::condition_variable made_;
  std::map<std::string, std::shared_ptr<Entry>> entries_;
  uint32_t askers_ = 0;
};

}  // namespace braid
