// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>

#include "base/status.h"

namespace braid::client {

// A thread that looks again and again whether two levels go on, while they have work. All functions
// but the constructor's may be called from any thread.
class LevelWatch {
 public:
  // `look` says whether there is work, or what is wrong. Then, or when asked to, `end` is called
  // once, and nothing more.
  LevelWatch(std::function<Result<bool>()> look, std::function<void(const Status&)> end);
  // Stops.
  ~LevelWatch();
  LevelWatch(const LevelWatch&) = delete;
  LevelWatch& operator=(const LevelWatch&) = delete;

  // Once.
  void begin();
  // Waits for the thread.
  void stop();
  // There is work.
  void wake();
  // The first reason counts.
  void end_for(const Status& reason);
  // What it has ended for, or will in a moment.
  Status reason() const;

 private:
  void run();
  bool is_over() const { return is_stopping_ || !reason_.is_ok(); }

  const std::function<Result<bool>()> look_;
  const std::function<void(const Status&)> end_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  bool is_stopping_ = false;
  bool is_awake_ = false;
  bool is_asleep_ = false;
  Status reason_;
  std::thread thread_;
};

}  // namespace braid::client
