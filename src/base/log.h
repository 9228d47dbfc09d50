// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include <fmt/core.h>

#include "base/status.h"

namespace braid {

// A job for who logs about it: its name, and the number of the user whose it is.
struct JobLabel {
  std::string name;
  uint32_t user = 0;
};

// The job of a line. None is named without its user: the log counts lines by users, so that no
// user's flood hides what is said of another one's jobs.
struct LineJob {
  LineJob() = default;
  LineJob(std::string_view job, uint32_t of_user) : name(job), user(of_user) {}
  LineJob(const JobLabel& label) : LineJob(label.name, label.user) {}

  std::string_view name{};  // empty: the line is about no job
  std::optional<uint32_t> user{};
};

// What a line is about, as far as it is known: for those who look for all lines of one job or peer.
// The text says it, too.
struct LogFields {
  LineJob job = {};
  std::optional<uint32_t> user = job.user;  // given for a process that is in no job
  std::optional<uint32_t> rank = {};
  std::string_view peer = {};  // name of a node
  std::string_view rail = {};
  std::optional<uint32_t> flow = {};
};

// Auto: to the journal with fields of its own, where stderr goes there, else as text. Text: a line
// with time and level; where stderr goes to the journal, with a priority instead of both. Json: one
// object a line: "time" (RFC 3339, UTC, microseconds), "level", "node", "message", and those of
// LogFields that are known.
enum class LogFormat : uint8_t { Auto, Text, Json };

struct LogOptions {
  std::string level = "info";
  LogFormat format = LogFormat::Auto;
  std::string node{};  // this one's name; empty: not known
};

// One line per event. Call once, from main. Levels: trace, debug, info, warn, error. Nobody waits
// where stderr is a pipe that is not read, or the journal hangs: lines are lost then, and the log
// says how many.
//
// Lines of one place in the code are limited, so that nobody fills a disk with them: of those from
// info upwards, about one user and one job, kLinesPerWindow are written in kWindowSeconds; the
// others are held back, and one line tells how many they were and what the last one said (see
// repeated_lines.h).
Status init_log(const LogOptions& options);
// The format and the node of `options` from now on; the level stays. From the thread of init_log.
void set_log_format(const LogOptions& options);
Status set_log_level(const std::string& level);
bool is_log_level(const std::string& level);
std::optional<LogFormat> parse_log_format(std::string_view name);  // "auto", "text", "json"

// Calls back, from any thread, when lines are held back and none were: some thread is to call
// tell_held_lines() then. The callback must not log, and not take long. nullptr: nobody is called
// any more, from this call's end on.
void set_held_lines_callback(std::function<void()> callback);
// Writes how many lines were held back in windows that are over. In how many milliseconds the next
// one ends in which some are; nothing: none are left. Any thread.
std::optional<uint64_t> tell_held_lines();
// The same of all windows, at the end of the process.
void tell_all_held_lines();

enum class LogLevel : uint8_t { Trace, Debug, Info, Warn, Error };

bool is_logged(LogLevel level);
void write_log(LogLevel level, const LogFields& fields, fmt::string_view format,
               fmt::format_args arguments);

// Formatting is compiled once, in write_log: through spdlog's own templates every file with a log
// line took two seconds longer to compile.
template <typename... Args>
void log_line(LogLevel level, fmt::format_string<Args...> format, Args&&... arguments) {
  if (is_logged(level)) write_log(level, {}, format, fmt::make_format_args(arguments...));
}
template <typename... Args>
void log_line(LogLevel level, const LogFields& fields, fmt::format_string<Args...> format,
              Args&&... arguments) {
  if (is_logged(level)) write_log(level, fields, format, fmt::make_format_args(arguments...));
}

}  // namespace braid

// Used everywhere: BRAID_LOG_INFO(LogFields{.job = label}, "job '{}': …", label.name), or without
// fields where the line is about no job and no user.
#define BRAID_LOG_DEBUG(...) ::braid::log_line(::braid::LogLevel::Debug, __VA_ARGS__)
#define BRAID_LOG_INFO(...) ::braid::log_line(::braid::LogLevel::Info, __VA_ARGS__)
#define BRAID_LOG_WARN(...) ::braid::log_line(::braid::LogLevel::Warn, __VA_ARGS__)
#define BRAID_LOG_ERROR(...) ::braid::log_line(::braid::LogLevel::Error, __VA_ARGS__)
