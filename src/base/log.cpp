// SPDX-License-Identifier: Apache-2.0
#include "base/log.h"

#include <cstdlib>
#include <memory>
#include <optional>

#include <spdlog/pattern_formatter.h>
#include <spdlog/spdlog.h>

#include "base/stderr_sink.h"

namespace braid {
namespace {

// "<4>": the syslog priority at the start of a line, as sd-daemon(3) has it.
class PriorityFlag final : public spdlog::custom_flag_formatter {
 public:
  void format(const spdlog::details::log_msg& message, const std::tm&,
              spdlog::memory_buf_t& out) override {
    static constexpr char kPriority[] = {'7', '7', '6', '4', '3', '2', '6'};
    out.push_back('<');
    out.push_back(kPriority[message.level]);
    out.push_back('>');
  }
  std::unique_ptr<custom_flag_formatter> clone() const override {
    return std::make_unique<PriorityFlag>();
  }
};

std::optional<spdlog::level::level_enum> parse_level(const std::string& level) {
  if (level == "trace") return spdlog::level::trace;
  if (level == "debug") return spdlog::level::debug;
  if (level == "info") return spdlog::level::info;
  if (level == "warn") return spdlog::level::warn;
  if (level == "error") return spdlog::level::err;
  return std::nullopt;
}

spdlog::level::level_enum spdlog_level(LogLevel level) {
  switch (level) {
    case LogLevel::Trace:
      return spdlog::level::trace;
    case LogLevel::Debug:
      return spdlog::level::debug;
    case LogLevel::Info:
      return spdlog::level::info;
    case LogLevel::Warn:
      return spdlog::level::warn;
    case LogLevel::Error:
      return spdlog::level::err;
  }
  return spdlog::level::off;
}

}  // namespace

Status init_log(const std::string& level) {
  auto logger = std::make_shared<spdlog::logger>("braid", std::make_shared<StderrSink>());
  if (std::getenv("JOURNAL_STREAM") != nullptr) {
    auto formatter = std::make_unique<spdlog::pattern_formatter>();
    formatter->add_flag<PriorityFlag>('*').set_pattern("%*%v");
    logger->set_formatter(std::move(formatter));
  } else {
    logger->set_pattern("%Y-%m-%d %H:%M:%S.%e %l %v");
  }
  spdlog::set_default_logger(std::move(logger));
  return set_log_level(level);
}

Status set_log_level(const std::string& level) {
  const auto parsed = parse_level(level);
  if (!parsed) {
    return make_status(StatusCode::InvalidArgument,
                       "'{}' is no log level; use trace, debug, info, warn or error", level);
  }
  spdlog::set_level(*parsed);
  return Status::ok();
}

bool is_log_level(const std::string& level) { return parse_level(level).has_value(); }

bool is_logged(LogLevel level) { return spdlog::should_log(spdlog_level(level)); }

void write_log(LogLevel level, fmt::string_view format, fmt::format_args arguments) {
  fmt::memory_buffer line;
  fmt::vformat_to(fmt::appender(line), format, arguments);
  spdlog::log(spdlog_level(level), spdlog::string_view_t(line.data(), line.size()));
}

}  // namespace braid
