// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <mutex>
#include <string>

#include "base/status.h"

namespace braid::client {

// Why what this rank asked for last was refused, if it was. A rank that leaves its job then says
// so: others may wait for what was refused. Any thread; its lock is taken last.
class LastRefusal {
 public:
  // Returns what it is given: the answer to a question.
  Status note(Status answer) {
    if (answer.is_ok() && !is_refused_.load(std::memory_order_relaxed)) return answer;
    const std::lock_guard lock(mutex_);
    text_ = is_refusal(answer) ? answer.message().substr(0, kBytesMax) : std::string();
    is_refused_.store(!text_.empty(), std::memory_order_relaxed);
    return answer;
  }

  // With the refusal, unless the reason names it already.
  std::string add_to(std::string reason) const {
    if (!is_refused_.load(std::memory_order_relaxed)) return reason;
    const std::lock_guard lock(mutex_);
    if (reason.find(text_) == std::string::npos)
      reason += fmt::format("{}it was refused: {}", reason.empty() ? "" : "; ", text_);
    return reason;
  }

 private:
  static constexpr size_t kBytesMax = 1000;

  // An error of this rank's question alone: the job goes on.
  static bool is_refusal(const Status& status) {
    switch (status.code()) {
      case StatusCode::InvalidArgument:
      case StatusCode::NotFound:
      case StatusCode::AlreadyExists:
      case StatusCode::PermissionDenied:
      case StatusCode::ResourceExhausted:
      case StatusCode::Mismatch:
        return true;
      default:
        return false;
    }
  }

  std::atomic<bool> is_refused_{false};
  mutable std::mutex mutex_;
  std::string text_;
};

}  // namespace braid::client
