// SPDX-License-Identifier: Apache-2.0
#include "base/log.h"

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

#include <spdlog/sinks/sink.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/hash.h"
#include "base/journal.h"
#include "base/line_fields.h"
#include "base/log_formatters.h"
#include "base/repeated_lines.h"
#include "base/stderr_sink.h"

namespace braid {
namespace {

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

// The lines that are held back, of all threads.
struct HeldBack {
  std::mutex mutex;
  RepeatedLines lines;
  std::function<void()> on_first;
};

HeldBack& held_back() {
  static auto* held = new HeldBack;  // threads may log until the process has gone
  return *held;
}

void write_line(spdlog::level::level_enum level, const LogFields& fields, std::string_view text) {
  const LineFields of_line(fields);
  spdlog::log(level, spdlog::string_view_t(text.data(), text.size()));
}

std::optional<uint64_t> tell_held_until(uint64_t now_ns) {
  HeldBack& held = held_back();
  std::vector<RepeatedLines::Held> ended;
  std::optional<uint64_t> next_ns;
  {
    const std::lock_guard lock(held.mutex);
    ended = held.lines.take_ended(now_ns);
    next_ns = held.lines.next_end_ns();
  }
  for (const RepeatedLines::Held& one : ended)
    write_line(static_cast<spdlog::level::level_enum>(one.level), {}, held_text(one));
  return next_ns;
}

RepeatedLines::Subject subject_of(const LogFields& fields) {
  const std::string_view thing = fields.job.name.empty() ? fields.peer : fields.job.name;
  return {fields.user, thing.empty() ? 0 : fnv1a64(thing)};
}

// Whether the line may be written; else it is held back.
bool admit(spdlog::level::level_enum level, const LogFields& fields, fmt::string_view format,
           std::string_view line) {
  // A user who asks for these wants all of them.
  if (level < spdlog::level::info) return true;
  const uint64_t now_ns = SystemClock().now_ns();
  tell_held_until(now_ns);
  HeldBack& held = held_back();
  const std::lock_guard lock(held.mutex);
  const bool held_none = !held.lines.next_end_ns();
  const uint64_t kind = fnv1a64({format.data(), format.size()});
  if (held.lines.admit(kind, subject_of(fields), level, line, now_ns)) return true;
  if (held_none && held.on_first) held.on_first();
  return false;
}

std::unique_ptr<spdlog::formatter> formatter_of(const LogOptions& options, bool for_journal) {
  if (options.format == LogFormat::Json) return std::make_unique<JsonFormatter>(options.node);
  return std::make_unique<TextFormatter>(for_journal);
}

std::shared_ptr<spdlog::sinks::sink> sink_of(const LogOptions& options) {
  const bool for_journal = goes_to_journal(STDERR_FILENO, std::getenv("JOURNAL_STREAM"));
  if (for_journal && options.format == LogFormat::Auto) {
    auto journal = std::make_shared<JournalSink>(options.node);
    if (journal->is_reachable()) return journal;
  }
  auto sink = std::make_shared<StderrSink>();
  sink->set_formatter(formatter_of(options, for_journal));
  return sink;
}

// Passes lines on to a sink that may be replaced while other threads log.
class ReplaceableSink final : public spdlog::sinks::sink {
 public:
  explicit ReplaceableSink(std::shared_ptr<spdlog::sinks::sink> first) : sink_(std::move(first)) {}

  void replace(std::shared_ptr<spdlog::sinks::sink> next) {
    const std::lock_guard lock(mutex_);
    sink_ = std::move(next);
  }
  void log(const spdlog::details::log_msg& message) override { current()->log(message); }
  void flush() override { current()->flush(); }
  // Each sink has the formatter that it was made with.
  void set_pattern(const std::string& /*pattern*/) override {}
  void set_formatter(std::unique_ptr<spdlog::formatter> /*formatter*/) override {}

 private:
  std::shared_ptr<spdlog::sinks::sink> current() {
    const std::lock_guard lock(mutex_);
    return sink_;
  }

  std::mutex mutex_;
  std::shared_ptr<spdlog::sinks::sink> sink_;
};

std::shared_ptr<ReplaceableSink>& sink_in_use() {
  static auto* sink = new std::shared_ptr<ReplaceableSink>;  // threads may log until the end
  return *sink;
}

}  // namespace

Status init_log(const LogOptions& options) {
  sink_in_use() = std::make_shared<ReplaceableSink>(sink_of(options));
  spdlog::set_default_logger(std::make_shared<spdlog::logger>("braid", sink_in_use()));
  return set_log_level(options.level);
}

void set_log_format(const LogOptions& options) {
  if (sink_in_use() != nullptr) sink_in_use()->replace(sink_of(options));
}

std::optional<LogFormat> parse_log_format(std::string_view name) {
  if (name == "auto") return LogFormat::Auto;
  if (name == "text") return LogFormat::Text;
  if (name == "json") return LogFormat::Json;
  return std::nullopt;
}

void set_held_lines_callback(std::function<void()> callback) {
  const std::lock_guard lock(held_back().mutex);
  held_back().on_first = std::move(callback);
}

std::optional<uint64_t> tell_held_lines() {
  const uint64_t now_ns = SystemClock().now_ns();
  const auto next_ns = tell_held_until(now_ns);
  if (!next_ns) return std::nullopt;
  return (*next_ns - std::min(now_ns, *next_ns)) / 1'000'000 + 1;
}

void tell_all_held_lines() { tell_held_until(UINT64_MAX); }

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

void write_log(LogLevel level, const LogFields& fields, fmt::string_view format,
               fmt::format_args arguments) {
  fmt::memory_buffer line;
  fmt::vformat_to(fmt::appender(line), format, arguments);
  const std::string_view text(line.data(), line.size());
  if (admit(spdlog_level(level), fields, format, text))
    write_line(spdlog_level(level), fields, text);
}

}  // namespace braid
