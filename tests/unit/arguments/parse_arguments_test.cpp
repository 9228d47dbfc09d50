// SPDX-License-Identifier: Apache-2.0
#include "arguments/parse_arguments.h"

#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

namespace braid {
namespace {

struct Outcome {
  std::optional<int> code;
  std::string output;
  std::string error;
};

// The program has the option --socket and the commands status (--json) and trace (FILE).
Outcome parse(std::vector<const char*> arguments) {
  CLI::App app("a program");
  app.set_version_flag("--version", std::string("tool 1.2"));
  app.require_subcommand(1);
  std::string socket;
  app.add_option("--socket", socket, "where");
  CLI::App* status = app.add_subcommand("status", "says it");
  status->fallthrough();
  bool as_json = false;
  status->add_flag("--json", as_json, "as JSON");
  std::string file;
  app.add_subcommand("trace", "writes it")->add_option("FILE", file, "into")->required();
  arguments.insert(arguments.begin(), "/usr/bin/tool");
  testing::internal::CaptureStdout();
  testing::internal::CaptureStderr();
  const auto code = parse_arguments(app, static_cast<int>(arguments.size()), arguments.data());
  return {code, testing::internal::GetCapturedStdout(), testing::internal::GetCapturedStderr()};
}

TEST(ParseArguments, GoesOnWithRightOnes) {
  for (const Outcome& outcome :
       {parse({"status", "--json"}), parse({"status", "--socket", "/s"}), parse({"trace", "f"})}) {
    EXPECT_EQ(outcome.code, std::nullopt);
    EXPECT_EQ(outcome.output + outcome.error, "");
  }
}

TEST(ParseArguments, EndsWellAfterVersionAndHelp) {
  EXPECT_EQ(parse({"--version"}).code, 0);
  EXPECT_EQ(parse({"--version"}).output, "tool 1.2\n");
  EXPECT_EQ(parse({"--help"}).code, 0);
  EXPECT_NE(parse({"status", "--help"}).output.find("--json"), std::string::npos);
}

TEST(ParseArguments, NamesWhatIsWrongAndWhatWasMeant) {
  const std::vector<std::pair<Outcome, const char*>> outcomes = {
      {parse({"statsu"}),
       "tool: there is no command 'statsu' here; did you mean 'status'? (tool --help says more)\n"},
      {parse({"status", "--jsn"}),
       "tool: there is no option '--jsn' here; did you mean '--json'? (tool status --help says "
       "more)\n"},
      {parse({"--scoket=/s", "status"}),
       "tool: there is no option '--scoket' here; did you mean '--socket'? (tool status --help "
       "says more)\n"},
      {parse({"status", "more"}),
       "tool: there is no argument 'more' here (tool status --help says more)\n"},
      {parse({"everything"}),
       "tool: there is no command 'everything' here (tool --help says more)\n"},
      {parse({}), "tool: a command is required: status, trace (tool --help says more)\n"},
      {parse({"trace", "--fiel", "f"}),
       "tool: there is no option '--fiel' here (tool trace --help says more)\n"},
      {parse({"trace"}), "tool: FILE is required (tool trace --help says more)\n"},
  };
  for (const auto& [outcome, said] : outcomes) {
    EXPECT_EQ(outcome.code, kExitUsage);
    EXPECT_EQ(outcome.error, said);
    EXPECT_EQ(outcome.output, "");
  }
}

TEST(ParseArguments, KeepsControlLettersFromTheTerminal) {
  EXPECT_EQ(parse({"\x1b[31m"}).error.find('\x1b'), std::string::npos);
}

}  // namespace
}  // namespace braid
