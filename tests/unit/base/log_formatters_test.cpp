// SPDX-License-Identifier: Apache-2.0
#include "base/log_formatters.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "base/line_fields.h"
#include "base/stderr_sink.h"

namespace braid {
namespace {

using Json = nlohmann::json;
using ::testing::HasSubstr;
using ::testing::MatchesRegex;

std::string format(spdlog::formatter& formatter, std::string_view text,
                   const LogFields& fields = {},
                   spdlog::level::level_enum level = spdlog::level::info) {
  const LineFields of_line(fields);
  spdlog::memory_buf_t line;
  formatter.format({"braid", level, spdlog::string_view_t(text.data(), text.size())}, line);
  return {line.data(), line.size()};
}

// The only line in it.
Json parse_line(const std::string& line) {
  EXPECT_EQ(line.back(), '\n');
  EXPECT_EQ(line.find('\n'), line.size() - 1);
  return Json::parse(line);
}

TEST(JsonFormatter, SaysWhatIsKnown) {
  JsonFormatter formatter("a");
  const std::string line =
      format(formatter, "rank 3 joined",
             {.job = {"train", 1000}, .rank = 3, .peer = "b", .rail = "eth0", .flow = 0},
             spdlog::level::warn);
  const Json object = parse_line(line);
  EXPECT_THAT(object["time"].get<std::string>(),
              MatchesRegex("[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9:]{8}\\.[0-9]{6}Z"));
  EXPECT_EQ(object["level"], "warn");
  EXPECT_EQ(object["node"], "a");
  EXPECT_EQ(object["message"], "rank 3 joined");
  EXPECT_EQ(object["job"], "train");
  EXPECT_EQ(object["user"], 1000);
  EXPECT_EQ(object["rank"], 3);
  EXPECT_EQ(object["peer"], "b");
  EXPECT_EQ(object["rail"], "eth0");
  EXPECT_EQ(object["flow"], 0);
  EXPECT_EQ(object.size(), 10u);
}

TEST(JsonFormatter, LeavesOutWhatIsNotKnown) {
  JsonFormatter formatter("");
  EXPECT_EQ(parse_line(format(formatter, "x")).size(), 3u);
}

TEST(JsonFormatter, HasALevelForEach) {
  JsonFormatter formatter("");
  EXPECT_EQ(parse_line(format(formatter, "x", {}, spdlog::level::trace))["level"], "trace");
  EXPECT_EQ(parse_line(format(formatter, "x", {}, spdlog::level::debug))["level"], "debug");
  EXPECT_EQ(parse_line(format(formatter, "x", {}, spdlog::level::info))["level"], "info");
  EXPECT_EQ(parse_line(format(formatter, "x", {}, spdlog::level::err))["level"], "error");
}

TEST(JsonFormatter, IsJsonWhateverTheTextIs) {
  JsonFormatter formatter("a");
  std::string hostile = "\"}\n{\"level\":\"error\"\\ \xff\xfe\x1b[2J";
  hostile += '\0';
  const Json object = parse_line(format(formatter, "job '" + hostile + "'", {.job = {hostile, 0}}));
  EXPECT_EQ(object["level"], "info");
  EXPECT_THAT(object["job"].get<std::string>(), HasSubstr("\"}\n{\"level\":\"error\"\\ \ufffd"));
  for (int byte = 0; byte < 256; ++byte) {
    const std::string one(1, static_cast<char>(byte));
    EXPECT_TRUE(Json::accept(format(formatter, one, {.job = {one, 0}}))) << byte;
  }
}

TEST(JsonFormatter, FitsALineWhateverTheTextIs) {
  JsonFormatter formatter("a");
  for (const char byte : {'x', '\0', '"', '\xff'}) {
    const std::string name(255, byte), text(100'000, byte);
    const std::string line =
        format(formatter, text, {.job = {name, 0}, .rank = 1, .peer = "node-b"});
    EXPECT_LE(line.size(), kLogLineBytesMax);
    EXPECT_FALSE(parse_line(line)["message"].get<std::string>().empty());
  }
}

TEST(TextFormatter, HasTimeAndLevelAsTheConfigurationNamesIt) {
  TextFormatter formatter(false);
  for (const auto& [level, name] : {std::pair{spdlog::level::debug, "debug"},
                                    {spdlog::level::info, "info"},
                                    {spdlog::level::warn, "warn"},
                                    {spdlog::level::err, "error"}}) {
    EXPECT_THAT(format(formatter, "hello", {}, level),
                MatchesRegex("[0-9-]{10} [0-9:]{8}\\.[0-9]{3} " + std::string(name) + " hello\n"));
  }
}

TEST(TextFormatter, HasAPriorityForTheJournal) {
  TextFormatter formatter(true);
  EXPECT_EQ(format(formatter, "x", {}, spdlog::level::err), "<3>x\n");
  EXPECT_EQ(format(formatter, "x", {}, spdlog::level::warn), "<4>x\n");
  EXPECT_EQ(format(formatter, "x", {}, spdlog::level::info), "<6>x\n");
  EXPECT_EQ(format(formatter, "x", {}, spdlog::level::debug), "<7>x\n");
}

TEST(TextFormatter, WritesOneLineWhateverTheTextIs) {
  TextFormatter formatter(true);
  EXPECT_EQ(format(formatter, "job 'a\n<3>root: all is lost'"),
            "<6>job 'a\\n<3>root: all is lost'\n");
}

}  // namespace
}  // namespace braid
