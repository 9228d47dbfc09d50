// SPDX-License-Identifier: Apache-2.0
#include "levels/level_watch.h"

#include <chrono>
#include <utility>

#include <pthread.h>

namespace braid::client {
namespace {

constexpr std::chrono::milliseconds kBetweenLooks{20};
// So many looks without work, then it sleeps: training does not wake it in each step.
constexpr int kIdleLooks = 50;

}  // namespace

LevelWatch::LevelWatch(std::function<Result<bool>()> look, std::function<void(const Status&)> end)
    : look_(std::move(look)), end_(std::move(end)) {}

LevelWatch::~LevelWatch() { stop(); }

void LevelWatch::begin() {
  thread_ = std::thread([this] { run(); });
  (void)::pthread_setname_np(thread_.native_handle(), "braid-levels");
}

void LevelWatch::stop() {
  {
    const std::lock_guard lock(mutex_);
    is_stopping_ = true;
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
}

void LevelWatch::wake() {
  {
    const std::lock_guard lock(mutex_);
    is_awake_ = true;
    if (!is_asleep_) return;
  }
  changed_.notify_all();
}

void LevelWatch::end_for(const Status& reason) {
  {
    const std::lock_guard lock(mutex_);
    if (reason_.is_ok()) reason_ = reason;
  }
  changed_.notify_all();
}

Status LevelWatch::reason() const {
  const std::lock_guard lock(mutex_);
  return reason_;
}

void LevelWatch::run() {
  int idle_looks = 0;
  std::unique_lock lock(mutex_);
  while (!is_over()) {
    if (idle_looks < kIdleLooks) {
      changed_.wait_for(lock, kBetweenLooks, [&] { return is_over(); });
    } else {
      is_asleep_ = true;
      changed_.wait(lock, [&] { return is_over() || is_awake_; });
      is_asleep_ = false;
    }
    is_awake_ = false;
    if (is_over()) break;
    lock.unlock();
    const Result<bool> has_work = look_();
    lock.lock();
    if (!has_work && reason_.is_ok()) reason_ = has_work.status();
    idle_looks = has_work && *has_work ? 0 : idle_looks + 1;
  }
  const Status reason = reason_;
  lock.unlock();
  if (!reason.is_ok()) end_(reason);
}

}  // namespace braid::client
