// SPDX-License-Identifier: Apache-2.0
#include "base/log_formatters.h"

#include <chrono>

#include <nlohmann/json.hpp>
#include <spdlog/pattern_formatter.h>

#include "base/line_fields.h"
#include "base/log_text.h"
#include "base/printable.h"
#include "base/stderr_sink.h"

namespace braid {
namespace {

using Json = nlohmann::ordered_json;

constexpr size_t kJsonMessageBytesMax = 3000;  // leaves room for the other fields

std::string_view text_of(const spdlog::details::log_msg& message) {
  return {message.payload.data(), message.payload.size()};
}

// "2026-03-01T12:00:00.123456Z"
std::string rfc3339(spdlog::log_clock::time_point time) {
  const auto since_epoch =
      std::chrono::duration_cast<std::chrono::microseconds>(time.time_since_epoch()).count();
  const std::time_t seconds = static_cast<std::time_t>(since_epoch / 1'000'000);
  std::tm utc{};
  ::gmtime_r(&seconds, &utc);
  return fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}.{:06}Z", utc.tm_year + 1900,
                     utc.tm_mon + 1, utc.tm_mday, utc.tm_hour, utc.tm_min, utc.tm_sec,
                     since_epoch % 1'000'000);
}

std::string_view level_name(spdlog::level::level_enum level) {
  switch (level) {
    case spdlog::level::trace:
      return "trace";
    case spdlog::level::debug:
      return "debug";
    case spdlog::level::warn:
      return "warn";
    case spdlog::level::err:
    case spdlog::level::critical:
      return "error";
    case spdlog::level::info:
    case spdlog::level::off:
    case spdlog::level::n_levels:
      break;
  }
  return "info";
}

void add_fields(Json& object, const LogFields& fields) {
  if (!fields.job.name.empty()) object["job"] = fields.job.name;
  if (fields.user) object["user"] = *fields.user;
  if (fields.rank) object["rank"] = *fields.rank;
  if (!fields.peer.empty()) object["peer"] = fields.peer;
  if (!fields.rail.empty()) object["rail"] = fields.rail;
  if (fields.flow) object["flow"] = *fields.flow;
}

// "<4>": at the start of a line, as sd-daemon(3) has it.
class PriorityFlag final : public spdlog::custom_flag_formatter {
 public:
  void format(const spdlog::details::log_msg& message, const std::tm&,
              spdlog::memory_buf_t& out) override {
    fmt::format_to(fmt::appender(out), "<{}>", syslog_priority(message.level));
  }
  std::unique_ptr<custom_flag_formatter> clone() const override {
    return std::make_unique<PriorityFlag>();
  }
};

// "warn": the names that log.level takes.
class LevelFlag final : public spdlog::custom_flag_formatter {
 public:
  void format(const spdlog::details::log_msg& message, const std::tm&,
              spdlog::memory_buf_t& out) override {
    const std::string_view name = level_name(message.level);
    out.append(name.data(), name.data() + name.size());
  }
  std::unique_ptr<custom_flag_formatter> clone() const override {
    return std::make_unique<LevelFlag>();
  }
};

}  // namespace

int syslog_priority(spdlog::level::level_enum level) {
  static constexpr int kPriorities[] = {7, 7, 6, 4, 3, 2, 6};
  return kPriorities[level];
}

TextFormatter::TextFormatter(bool for_journal) : for_journal_(for_journal) {
  auto pattern = std::make_unique<spdlog::pattern_formatter>();
  if (for_journal)
    pattern->add_flag<PriorityFlag>('*').set_pattern("%*%v");
  else
    pattern->add_flag<LevelFlag>('*').set_pattern("%Y-%m-%d %H:%M:%S.%e %* %v");
  pattern_ = std::move(pattern);
}

void TextFormatter::format(const spdlog::details::log_msg& message, spdlog::memory_buf_t& line) {
  const std::string text = printable(text_of(message));
  spdlog::details::log_msg harmless = message;
  harmless.payload = text;
  pattern_->format(harmless, line);
}

std::unique_ptr<spdlog::formatter> TextFormatter::clone() const {
  return std::make_unique<TextFormatter>(for_journal_);
}

void JsonFormatter::format(const spdlog::details::log_msg& message, spdlog::memory_buf_t& line) {
  Json object = {{"time", rfc3339(message.time)}, {"level", level_name(message.level)}};
  if (!node_.empty()) object["node"] = node_;
  object["message"] = "";
  add_fields(object, LineFields::current());
  // What is escaped takes up to six bytes for one.
  size_t bytes_max = kJsonMessageBytesMax;
  std::string text;
  do {
    object["message"] = cut_text(text_of(message), bytes_max);
    text = printable_lines(object.dump(-1, ' ', false, Json::error_handler_t::replace));
    bytes_max /= 2;
  } while (text.size() >= kLogLineBytesMax && bytes_max > 0);
  text += '\n';
  line.append(text.data(), text.data() + text.size());
}

std::unique_ptr<spdlog::formatter> JsonFormatter::clone() const {
  return std::make_unique<JsonFormatter>(node_);
}

}  // namespace braid
