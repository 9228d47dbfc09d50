// SPDX-License-Identifier: Apache-2.0
#include "arguments/complete_words.h"

#include <string>
#include <vector>

#include <CLI/CLI.hpp>
#include <gtest/gtest.h>

#include "arguments/parse_arguments.h"

namespace braid {
namespace {

// tool [--socket FILE] plan [--planner {a,b}] [--sizes {1,10},...] [--job JOB] [--quick] [TRACE...]
std::string offered(std::vector<const char*> words) {
  CLI::App app("a program");
  app.require_subcommand(1);
  std::string text;
  app.add_option("--socket", text, "where")->type_name(kFileValue);
  app.add_subcommand("hidden", "not for people")->group("");
  CLI::App* plan = app.add_subcommand("plan", "makes\none");
  const auto fits = [](const std::string&) { return std::string(); };
  plan->add_option("--planner", text, "which")
      ->check(CLI::Validator(fits, choices_text({"a", "b"})));
  std::vector<std::string> texts;
  plan->add_option("--sizes", texts, "which")
      ->delimiter(',')
      ->check(CLI::Validator(fits, choices_text({"1", "10"})));
  plan->add_option("--job", text, "whose")->type_name("JOB");
  bool is_quick = false;
  plan->add_flag("--quick", is_quick, "soon");
  plan->add_option("TRACE", texts, "of this")->type_name(kFileValue);
  const Completers completers = {
      {"JOB", [](const GivenValues& given) {
         const auto socket = given.find("--socket");
         return std::vector<std::string>{
             "job\x1b[31m", "job at " + (socket == given.end() ? "home" : socket->second)};
       }}};
  words.insert(words.begin(), {"tool", kCompleteCommand});
  testing::internal::CaptureStdout();
  EXPECT_EQ(parse_arguments(app, static_cast<int>(words.size()), words.data(), completers), 0);
  return testing::internal::GetCapturedStdout();
}

TEST(CompleteWords, OffersCommandsThatAreForPeople) {
  EXPECT_EQ(offered({""}), "words\nplan\tmakes\\none\n");
  EXPECT_EQ(offered({"x"}), "words\n");
  EXPECT_EQ(offered({}), "words\n");
}

TEST(CompleteWords, OffersTheOptionsOfACommandAndThoseAroundItThatTakeValues) {
  EXPECT_EQ(offered({"plan", "--q"}), "words\n--quick\tsoon\n");
  EXPECT_EQ(offered({"plan", "--so"}), "words\n--socket\twhere\n");
  EXPECT_EQ(offered({"plan", "--he"}), "words\n--help\tPrint this help message and exit\n");
}

TEST(CompleteWords, OffersTheValuesOfAnOption) {
  EXPECT_EQ(offered({"plan", "--planner", ""}), "words\na\t\nb\t\n");
  EXPECT_EQ(offered({"plan", "--planner=b"}), "words\n--planner=b\t\n");
  EXPECT_EQ(offered({"plan", "--sizes", "1,1"}), "words\n1,1\t\n1,10\t\n");
  EXPECT_EQ(offered({"plan", "--sizes=1,10"}), "words\n--sizes=1,10\t\n");
  EXPECT_EQ(offered({"--socket", ""}), "files\n");
}

TEST(CompleteWords, OffersWhatThereIsNowAndNothingThatCommandsTheTerminal) {
  EXPECT_EQ(offered({"plan", "--job", ""}), "words\njob at home\t\n");
  EXPECT_EQ(offered({"--socket", "/s", "plan", "--job", ""}), "words\njob at /s\t\n");
  EXPECT_EQ(offered({"plan", "--socket=/s", "--job", ""}), "words\njob at /s\t\n");
}

TEST(CompleteWords, KnowsWhatIsAnArgument) {
  EXPECT_EQ(offered({"plan", "--quick", "t"}), "files\n");
  EXPECT_EQ(offered({"plan", "--planner", "a", "one", "t"}), "files\n");
  EXPECT_EQ(offered({"plan", "--", "--q"}), "files\n");
}

}  // namespace
}  // namespace braid
