// SPDX-License-Identifier: Apache-2.0
#include "base/log.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <spdlog/spdlog.h>

namespace braid {
namespace {

class LogTest : public ::testing::Test {
 protected:
  void SetUp() override { level_ = spdlog::get_level(); }
  void TearDown() override { spdlog::set_level(level_); }

  spdlog::level::level_enum level_{};
};

TEST_F(LogTest, KnowsItsLevels) {
  for (const char* level : {"trace", "debug", "info", "warn", "error"}) {
    EXPECT_TRUE(is_log_level(level)) << level;
    EXPECT_TRUE(set_log_level(level).is_ok()) << level;
  }
  EXPECT_EQ(spdlog::get_level(), spdlog::level::err);
}

TEST_F(LogTest, RefusesALevelThatIsNone) {
  EXPECT_FALSE(is_log_level("warning"));
  EXPECT_FALSE(is_log_level("INFO"));
  ASSERT_TRUE(set_log_level("warn").is_ok());
  const Status refused = set_log_level("loud");
  EXPECT_EQ(refused.code(), StatusCode::InvalidArgument);
  EXPECT_EQ(refused.message(), "'loud' is no log level; use trace, debug, info, warn or error");
  EXPECT_EQ(spdlog::get_level(), spdlog::level::warn);
}

TEST_F(LogTest, WritesWhatItsLevelLetsThrough) {
  ASSERT_TRUE(set_log_level("warn").is_ok());
  EXPECT_FALSE(is_logged(LogLevel::Info));
  EXPECT_TRUE(is_logged(LogLevel::Warn));
  ::testing::internal::CaptureStdout();
  BRAID_LOG_INFO("quiet {}", 1);
  BRAID_LOG_ERROR("rank {} of '{}' died: {{}}", 3, "job");
  const std::string output = ::testing::internal::GetCapturedStdout();
  EXPECT_THAT(output, ::testing::HasSubstr("rank 3 of 'job' died: {}"));
  EXPECT_THAT(output, ::testing::Not(::testing::HasSubstr("quiet")));
}

TEST_F(LogTest, AFloodOfOneUserHidesNoLineAboutAnother) {
  ASSERT_TRUE(set_log_level("info").is_ok());
  const auto say = [](uint32_t user, const std::string& job) {
    BRAID_LOG_WARN(LogFields{.job = {job, user}}, "a flood: {} of {}", job, user);
    BRAID_LOG_WARN(LogFields{.user = user}, "a process of {} was refused", user);
  };
  ::testing::internal::CaptureStdout();
  for (int i = 0; i < 1000; ++i) say(1, std::to_string(i));
  say(2, "mine");
  const std::string output = ::testing::internal::GetCapturedStdout();
  EXPECT_THAT(output, ::testing::HasSubstr("a flood: mine of 2"));
  EXPECT_THAT(output, ::testing::HasSubstr("a process of 2 was refused"));
  EXPECT_THAT(output, ::testing::Not(::testing::HasSubstr("a flood: 900 of 1")))
      << "most jobs of one user count together";
}

}  // namespace
}  // namespace braid
