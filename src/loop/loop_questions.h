// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>

#include "base/status.h"
#include "loop/door.h"

namespace braid {

// What other threads ask a loop: each waits for its answer, for a while. A question that nobody
// waits for any more still counts until the loop has answered it or let it go, so a loop that hangs
// is asked no more than kOpenMax. Made and destroyed on the loop's thread, after the threads that
// ask.
class LoopQuestions {
 public:
  static constexpr uint32_t kOpenMax = 16;

  explicit LoopQuestions(Loop& loop)
      : door_(loop, kOpenMax, [](std::function<void()>& question) { question(); }) {}

  template <typename Answer>
  using Reply = std::function<void(Answer)>;
  // On the loop; calls back once, there, at once or later. To let go of `reply` is no answer.
  template <typename Answer>
  using Question = std::function<void(Reply<Answer>)>;

  // Any thread but the loop's. DeadlineExceeded; Unavailable: too many are open, or close() was
  // called.
  template <typename Answer>
  Result<Answer> ask(Question<Answer> question, uint32_t timeout_ms) {
    if (shared_->open.load() >= kOpenMax) return too_many();
    auto slot = std::make_shared<Slot<Answer>>(shared_);
    const bool is_taken = door_.send([question = std::move(question), slot] {
      question([slot](Answer answer) {
        const std::lock_guard lock(slot->shared->mutex);
        slot->answer = std::move(answer);
        slot->shared->changed.notify_all();
      });
    });
    if (!is_taken) return too_many();
    std::unique_lock lock(shared_->mutex);
    shared_->changed.wait_for(lock, std::chrono::milliseconds(timeout_ms),
                              [&] { return slot->answer.has_value() || shared_->is_closed; });
    if (slot->answer) return std::move(*slot->answer);
    if (shared_->is_closed) return Status(StatusCode::Unavailable, "braidd is ending");
    return make_status(StatusCode::DeadlineExceeded,
                       "the control loop has not answered within {} ms", timeout_ms);
  }

  // Who waits goes, and who asks from now on gets no answer. Any thread.
  void close() {
    const std::lock_guard lock(shared_->mutex);
    shared_->is_closed = true;
    shared_->changed.notify_all();
  }

 private:
  struct Shared {
    std::mutex mutex;
    std::condition_variable changed;
    bool is_closed = false;
    std::atomic<uint32_t> open{0};
  };
  // Shared by the thread that waits and the loop; with the last of them the question is over.
  template <typename Answer>
  struct Slot {
    explicit Slot(std::shared_ptr<Shared> of) : shared(std::move(of)) { ++shared->open; }
    ~Slot() { --shared->open; }
    Slot(const Slot&) = delete;
    Slot& operator=(const Slot&) = delete;
    const std::shared_ptr<Shared> shared;
    std::optional<Answer> answer;
  };

  static Status too_many() {
    return make_status(StatusCode::Unavailable, "the control loop has not answered {} questions",
                       kOpenMax);
  }

  const std::shared_ptr<Shared> shared_ = std::make_shared<Shared>();
  Door<std::function<void()>> door_;
};

}  // namespace braid
