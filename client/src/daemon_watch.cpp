// SPDX-License-Identifier: Apache-2.0
#include "daemon_watch.h"

#include <utility>

namespace braid::client {

DaemonWatch::News DaemonWatch::look(const std::string& path, uint64_t now_ns) {
  const bool is_new = now_ns - std::exchange(looked_ns_, now_ns) > times_.gap_ns;
  if (std::exchange(has_heard_, false)) return on_answer(now_ns);
  if (is_new && !is_silent_) return on_answer(now_ns);
  if (!question_) {
    if (now_ns < ask_ns_) return News::None;
    question_.emplace();
    if (!question_->begin(path, now_ns + times_.answer_ns)) return on_answer(now_ns);
  }
  bool is_open = false;
  const Status asked = question_->advance(now_ns, is_open);
  if (asked && !is_open) return News::None;
  // A refusal is an answer, too.
  if (asked.code() != StatusCode::DeadlineExceeded) return on_answer(now_ns);
  question_.reset();
  ask_ns_ = now_ns + times_.quiet_ns;
  return std::exchange(is_silent_, true) ? News::None : News::Silent;
}

DaemonWatch::News DaemonWatch::on_answer(uint64_t now_ns) {
  question_.reset();
  heard_ns_ = now_ns;
  ask_ns_ = now_ns + times_.quiet_ns;
  return std::exchange(is_silent_, false) ? News::Answers : News::None;
}

}  // namespace braid::client
