// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "loop/timer.h"

namespace braid {

// Sends long texts in parts, one in a millisecond: to seal and copy megabytes at once would hold up
// the loop. Several take turns. Loop thread only.
class PartedAnswers {
 public:
  static constexpr size_t kPartBytes = 256 << 10;

  struct Part {
    std::string_view text;
    uint32_t number = 0;
    uint32_t parts = 0;
    bool is_last() const { return number + 1 == parts; }
  };
  // False: nobody wants the rest.
  using Send = std::function<bool(const Part&)>;

  explicit PartedAnswers(Loop& loop) : timer_(loop) {}

  // What is one part goes at once.
  void send(std::shared_ptr<const std::string> text, Send send);

 private:
  struct Answer {
    std::shared_ptr<const std::string> text;
    Send send;
    uint32_t sent = 0;  // parts
  };
  static bool send_next(Answer& answer);
  void send_one();

  std::deque<Answer> answers_;
  Timer timer_;  // while there are some
};

// What comes of such a text.
class PartedText {
 public:
  enum class Outcome : uint8_t { Complete, NeedsMore, Refused };

  // In order, from 0 on; together at most `bytes_max`.
  Outcome add(std::string_view text, uint32_t number, uint32_t parts, size_t bytes_max);
  std::string take() { return std::move(text_); }

 private:
  std::string text_;
  uint32_t next_ = 0;
  uint32_t parts_ = 0;
};

}  // namespace braid
