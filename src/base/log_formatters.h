// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ctime>
#include <memory>
#include <string>
#include <utility>

#include <spdlog/formatter.h>

namespace braid {

// How StderrSink's lines look. Each is one line, whatever text is in it.

// "2026-03-01 12:00:00.123 info text", or for a stderr that the journal reads "<6>text".
class TextFormatter final : public spdlog::formatter {
 public:
  explicit TextFormatter(bool for_journal);
  void format(const spdlog::details::log_msg& message, spdlog::memory_buf_t& line) override;
  std::unique_ptr<spdlog::formatter> clone() const override;

 private:
  const bool for_journal_;
  std::unique_ptr<spdlog::formatter> pattern_;
};

// A JSON object, with the fields of LogFormat::Json; of at most kLogLineBytesMax: a longer message
// is cut. What is no UTF-8 becomes U+FFFD.
class JsonFormatter final : public spdlog::formatter {
 public:
  explicit JsonFormatter(std::string node) : node_(std::move(node)) {}
  void format(const spdlog::details::log_msg& message, spdlog::memory_buf_t& line) override;
  std::unique_ptr<spdlog::formatter> clone() const override;

 private:
  const std::string node_;
};

// The syslog priority of a line: 3 is an error, 7 for debugging.
int syslog_priority(spdlog::level::level_enum level);

}  // namespace braid
