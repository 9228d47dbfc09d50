// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <mutex>
#include <string>

#include <fmt/format.h>
#include <poll.h>
#include <spdlog/sinks/base_sink.h>
#include <unistd.h>

#include "base/line_fields.h"

namespace braid {

inline constexpr size_t kLogLineBytesMax = 4096;  // with its end; longer ones are cut

// "3 lines were lost here: nobody read them in time"
inline std::string lost_lines_text(uint64_t lines) {
  return fmt::format("{} lines were lost here: nobody read them in time", lines);
}

// Writes lines to a descriptor, as a rule stderr, and never waits for their reader: a pipe or
// a journal that is not read any more would stop every loop that has something to say. Lines for
// which there is no room are counted, and the next one that is written says how many were lost.
class StderrSink final : public spdlog::sinks::base_sink<std::mutex> {
 public:
  explicit StderrSink(int fd = STDERR_FILENO) : fd_(fd) {}

 private:
  void sink_it_(const spdlog::details::log_msg& message) override {
    if (lost_ > 0 && has_room()) {
      const LogFields none;
      const LineFields of_no_one(none);
      const std::string text = lost_lines_text(lost_);
      write({message.logger_name, spdlog::level::warn, text});
      lost_ = 0;
    }
    if (has_room())
      write(message);
    else
      ++lost_;
  }
  void flush_() override {}

  void write(const spdlog::details::log_msg& message) {
    spdlog::memory_buf_t line;
    formatter_->format(message, line);
    if (line.size() > kLogLineBytesMax) {
      line.resize(kLogLineBytesMax);
      line[kLogLineBytesMax - 1] = '\n';
    }
    (void)!::write(fd_, line.data(), line.size());
  }

  // For so many bytes: a pipe is ready to be written when it has a page left.
  bool has_room() const {
    pollfd entry{fd_, POLLOUT, 0};
    return ::poll(&entry, 1, 0) > 0 && (entry.revents & POLLOUT) != 0;
  }

  const int fd_;
  uint64_t lost_ = 0;
};

}  // namespace braid
