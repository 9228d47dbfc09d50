// SPDX-License-Identifier: Apache-2.0
// A test's body in a process of its own: for libraries that are loaded once or read their settings
// once.
#pragma once

#include <cstdio>
#include <cstdlib>
#include <functional>
#include <map>
#include <optional>
#include <string>

#include <gtest/gtest.h>

namespace own_process {

using Environment = std::map<std::string, std::string>;

[[noreturn]] inline void end_with_failures() {
  const auto* const result = testing::UnitTest::GetInstance()->current_test_info()->result();
  for (int i = 0; i < result->total_part_count(); ++i) {
    const auto& part = result->GetTestPartResult(i);
    std::fprintf(stderr, "%s:%d: %s\n", part.file_name(), part.line_number(), part.message());
  }
  std::exit(testing::Test::HasFailure() ? 1 : 0);
}

/// Starts the program anew with these variables, for the test that calls this. Once per test.
inline void run(const Environment& environment, const std::function<void()>& body) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  std::map<std::string, std::optional<std::string>> before;
  for (const auto& [name, value] : environment) {
    const char* const had = std::getenv(name.c_str());
    before[name] = had == nullptr ? std::nullopt : std::optional<std::string>(had);
    setenv(name.c_str(), value.c_str(), 1);
  }
  EXPECT_EXIT(
      {
        body();
        end_with_failures();
      },
      testing::ExitedWithCode(0), "");
  for (const auto& [name, value] : before) {
    if (value) {
      setenv(name.c_str(), value->c_str(), 1);
    } else {
      unsetenv(name.c_str());
    }
  }
}

}  // namespace own_process
