// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include <fmt/core.h>

#include "base/status.h"

namespace braid {

// One line per event, to stderr; under systemd (JOURNAL_STREAM is set) without time and with a
// priority prefix, which the journal understands. Call once, from main. Levels: trace, debug, info,
// warn, error. Nobody waits where stderr is a pipe or a journal that is not read: lines are lost
// then, and the log says how many.
Status init_log(const std::string& level);
Status set_log_level(const std::string& level);
bool is_log_level(const std::string& level);

enum class LogLevel : uint8_t { Trace, Debug, Info, Warn, Error };

bool is_logged(LogLevel level);
void write_log(LogLevel level, fmt::string_view format, fmt::format_args arguments);

// Formatting is compiled once, in write_log: through spdlog's own templates every file with a log
// line took two seconds longer to compile.
template <typename... Args>
void log_line(LogLevel level, fmt::format_string<Args...> format, Args&&... arguments) {
  if (is_logged(level)) write_log(level, format, fmt::make_format_args(arguments...));
}

}  // namespace braid

// Used everywhere: BRAID_LOG_INFO("job '{}': …", name)
#define BRAID_LOG_DEBUG(...) ::braid::log_line(::braid::LogLevel::Debug, __VA_ARGS__)
#define BRAID_LOG_INFO(...) ::braid::log_line(::braid::LogLevel::Info, __VA_ARGS__)
#define BRAID_LOG_WARN(...) ::braid::log_line(::braid::LogLevel::Warn, __VA_ARGS__)
#define BRAID_LOG_ERROR(...) ::braid::log_line(::braid::LogLevel::Error, __VA_ARGS__)
