// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <mutex>

#include <fmt/format.h>
#include <poll.h>
#include <spdlog/sinks/base_sink.h>
#include <unistd.h>

namespace braid {

// Writes lines to a descriptor, as a rule stderr, and never waits for whoever reads them: a pipe or
// a journal that is not read any more would stop every loop that has something to say. Lines for
// which there is no room are counted, and the next one that is written says how many were lost.
class StderrSink final : public spdlog::sinks::base_sink<std::mutex> {
 public:
  explicit StderrSink(int fd = STDERR_FILENO) : fd_(fd) {}

 private:
  void sink_it_(const spdlog::details::log_msg& message) override {
    if (!has_room()) {
      ++lost_;
      return;
    }
    spdlog::memory_buf_t line;
    if (lost_ > 0) {
      fmt::format_to(fmt::appender(line), "{} lines were lost here: nobody read them in time\n",
                     lost_);
      lost_ = 0;
    }
    formatter_->format(message, line);
    if (line.size() > kLineBytesMax) {
      line.resize(kLineBytesMax);
      line[kLineBytesMax - 1] = '\n';
    }
    (void)!::write(fd_, line.data(), line.size());
  }
  void flush_() override {}

  // For so many bytes: a pipe is ready to be written when it has a page left.
  bool has_room() const {
    pollfd entry{fd_, POLLOUT, 0};
    return ::poll(&entry, 1, 0) > 0 && (entry.revents & POLLOUT) != 0;
  }

  static constexpr size_t kLineBytesMax = 4096;  // longer ones are cut

  const int fd_;
  uint64_t lost_ = 0;
};

}  // namespace braid
