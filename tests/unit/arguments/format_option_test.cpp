// SPDX-License-Identifier: Apache-2.0
#include "arguments/format_option.h"

#include <optional>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>
#include <gtest/gtest.h>

#include "arguments/parse_arguments.h"

namespace braid {
namespace {

struct FormatOutcome {
  std::optional<int> code;
  bool as_json = false;
  std::string error;
};

FormatOutcome parse_format(std::vector<const char*> arguments) {
  CLI::App app("a program");
  FormatOutcome outcome;
  add_format_options(app, outcome.as_json);
  arguments.insert(arguments.begin(), "tool");
  testing::internal::CaptureStderr();
  outcome.code = parse_arguments(app, static_cast<int>(arguments.size()), arguments.data());
  outcome.error = testing::internal::GetCapturedStderr();
  return outcome;
}

TEST(FormatOptions, BothSpellingsAskForJson) {
  for (const FormatOutcome& outcome : {parse_format({"--json"}), parse_format({"--format", "json"}),
                                       parse_format({"--format=json"})}) {
    EXPECT_EQ(outcome.code, std::nullopt) << outcome.error;
    EXPECT_TRUE(outcome.as_json);
  }
  for (const FormatOutcome& outcome : {parse_format({}), parse_format({"--format", "table"})}) {
    EXPECT_EQ(outcome.code, std::nullopt) << outcome.error;
    EXPECT_FALSE(outcome.as_json);
  }
}

TEST(FormatOptions, RefuseWhatContradictsAndWhatIsUnknown) {
  EXPECT_EQ(parse_format({"--json", "--format", "table"}).code, kExitUsage);
  const FormatOutcome unknown = parse_format({"--format", "xml"});
  EXPECT_EQ(unknown.code, kExitUsage);
  EXPECT_NE(unknown.error.find("unknown format 'xml'; right is table or json"), std::string::npos);
}

}  // namespace
}  // namespace braid
