// SPDX-License-Identifier: Apache-2.0
#include "config/load.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "config/config_keys.h"
#include "temporary_file.h"

namespace braid {
namespace {

using Strings = std::vector<std::string>;
using ::testing::HasSubstr;
using ::testing::Lt;

Strings errors_of(std::string_view yaml, const Strings& settings = {}) {
  return parse_config(yaml, "f.yaml", settings).errors;
}

TEST(LoadConfig, NoFileGivesTheDefaults) {
  const LoadedConfig loaded = load_config(std::nullopt, {});
  EXPECT_TRUE(loaded.is_ok()) << loaded.error_text();
  EXPECT_EQ(loaded.config, DaemonConfig{});
}

TEST(LoadConfig, AFileWithoutSettingsGivesTheDefaults) {
  for (const char* yaml : {"", "# nothing\n", "---\n", "log:\n", "log:\n  #level: debug\n", "{}"}) {
    const LoadedConfig loaded = parse_config(yaml, "f.yaml", {});
    EXPECT_TRUE(loaded.is_ok()) << yaml << loaded.error_text();
    EXPECT_EQ(loaded.config, DaemonConfig{});
  }
}

TEST(LoadConfig, EveryKindOfValueIsRead) {
  const LoadedConfig loaded = parse_config(
      "node: {name: n1, address: 192.0.2.1, rack: r1}\n"
      "control: {port: 7000, cluster_key_file: /k}\n"
      "client:\n  arena_bytes_max: 1GiB\n"
      "transport:\n  rails: [eth0, eth1]\n  transports: tcp\n  chunk_bytes: 65536\n",
      "f.yaml", {});
  ASSERT_TRUE(loaded.is_ok()) << loaded.error_text();
  DaemonConfig expected;
  expected.node = {"n1", "192.0.2.1", "r1"};
  expected.control.port = 7000;
  expected.control.cluster_key_file = "/k";
  expected.client.arena_bytes_max = 1ull << 30;
  expected.transport.rails = {"eth0", "eth1"};
  expected.transport.chunk_bytes = 65536;
  EXPECT_EQ(loaded.config, expected);
}

TEST(LoadConfig, SettingsBeatTheFileAndTheLastOneWins) {
  const LoadedConfig loaded =
      parse_config("log: {level: debug}\nmetrics: {port: 1}\n", "f.yaml",
                   {"log.level=warn", "log.level = error", "control.cluster_key_file="});
  ASSERT_TRUE(loaded.is_ok()) << loaded.error_text();
  EXPECT_EQ(loaded.config.log.level, "error");
  EXPECT_EQ(loaded.config.metrics.port, 1);
}

TEST(LoadConfig, AllErrorsAreReportedAtOnceWithTheirLines) {
  EXPECT_EQ(errors_of("node:\n"
                      "  nam: x\n"
                      "control:\n"
                      "  port: 70000\n"
                      "transport:\n"
                      "  flows_per_link: many\n"
                      "\n"
                      "bogus: 1\n"
                      "log: {level: loud}\n",
                      {"metrics.port=x"}),
            Strings({"f.yaml:2: node.nam: unknown key; did you mean 'node.name'?",
                     "f.yaml:4: control.port: 70000 is out of range; use 1 to 65535",
                     "f.yaml:6: transport.flows_per_link: 'many' is not a whole number; use one "
                     "from 0 to 128",
                     "f.yaml:8: bogus: unknown key; the sections are node, control, client, "
                     "transport, collective, plan, tune, guard, metrics, page, log, debug; "
                     "braidd --print-config shows all keys",
                     "f.yaml:9: log.level: 'loud' is no log level; use trace, debug, info, warn or "
                     "error",
                     "--set metrics.port: 'x' is not a whole number; use one from 0 to 65535"}));
}

TEST(LoadConfig, WrongTypesAreErrors) {
  EXPECT_EQ(errors_of("metrics:\n  port: [1]\n"),
            Strings({"f.yaml:2: metrics.port: is a list; use 0 to 65535"}));
  EXPECT_EQ(errors_of("log:\n  level: {a: b}\n"),
            Strings({"f.yaml:2: log.level: is a map; use trace, debug, info, warn or error"}));
  EXPECT_EQ(errors_of("log:\n  level:\n"),
            Strings({"f.yaml:2: log.level: is nothing; use trace, debug, info, warn or error"}));
  EXPECT_EQ(errors_of("transport:\n  rails: [eth0, [eth1]]\n"),
            Strings({"f.yaml:2: transport.rails: has a list in its list; use network devices, or "
                     "auto"}));
  EXPECT_EQ(errors_of("log: debug\n"),
            Strings({"f.yaml:1: log: is 'debug'; write its keys below it, indented: level, "
                     "format"}));
  EXPECT_EQ(errors_of("log:\n  [a]: b\n"),
            Strings({"f.yaml:2: log: has a list as a key; use a name"}));
}

TEST(LoadConfig, DuplicateKeysAndSectionsAreErrors) {
  EXPECT_EQ(errors_of("log:\n  level: info\n  level: debug\n"),
            Strings({"f.yaml:3: log.level: stands in line 2 too; write it once"}));
  EXPECT_EQ(errors_of("log:\n  level: info\nmetrics:\nlog:\n"),
            Strings({"f.yaml:4: log: stands in line 1 too; write it once"}));
}

TEST(LoadConfig, DottedKeysInAFileAreExplained) {
  EXPECT_EQ(errors_of("log.level: debug\n"),
            Strings({"f.yaml:1: log.level: is written with a dot; in a file write \"log:\" and "
                     "below it, indented, \"level: …\""}));
}

TEST(LoadConfig, DocumentsThatAreNoMapAreErrors) {
  EXPECT_EQ(errors_of("\n- a\n- b\n").size(), 1u);
  EXPECT_NE(errors_of("\n- a\n")[0].find("f.yaml:2: the document is a list"), std::string::npos);
  EXPECT_NE(errors_of("hello")[0].find("is a single value"), std::string::npos);
  EXPECT_EQ(errors_of("log:\n---\nlog:\n").size(), 1u);
  EXPECT_NE(errors_of("log:\n---\nlog:\n")[0].find("there are 2 documents"), std::string::npos);
}

TEST(LoadConfig, WhatIsNoYamlIsAnErrorWithItsLine) {
  const Strings errors = errors_of("log:\n  level: [debug\n");
  ASSERT_EQ(errors.size(), 1u);
  EXPECT_EQ(errors[0].find("f.yaml:"), 0u);
  EXPECT_NE(errors[0].find("is not YAML"), std::string::npos);
  EXPECT_NE(errors_of("log: {level\n")[0].find("is not YAML"), std::string::npos);
}

TEST(LoadConfig, SyntaxErrorsSayWhatToWriteInstead) {
  EXPECT_EQ(errors_of("log:\n\tlevel: debug\n"),
            Strings({"f.yaml:2: is not YAML: the line is indented with a tab; use blanks, the same "
                     "number for all keys of a section"}));
  EXPECT_EQ(errors_of("log:\n  level: debug\n \tformat: json\n").at(0).find("f.yaml:3: is not"), 0u)
      << "wherever the parser stumbles over it";
  EXPECT_EQ(errors_of("transport: rails: eth0\n"),
            Strings({"f.yaml:1: is not YAML (illegal map value), at 'transport: rails: eth0'; "
                     "write one \"key: value\" in a line, and indent all keys of a section by the "
                     "same number of blanks"}));
  EXPECT_THAT(errors_of("transport:\n  rails: [eth0\n").at(0),
              HasSubstr("a list that begins with [ ends with ]"));
  EXPECT_THAT(errors_of("log: {level: debug\n").at(0), HasSubstr("what begins with { ends with }"));
  EXPECT_THAT(errors_of("log:\n  level: @debug\n").at(0), HasSubstr("in quotes"));
  EXPECT_THAT(errors_of("log:\n  level: @" + std::string(10'000, 'x')).at(0).size(), Lt(400u));
}

TEST(LoadConfig, ASectionWithoutKeysSaysHowTheyAreWritten) {
  EXPECT_EQ(errors_of("transport: rails\n"),
            Strings({"f.yaml:1: transport: is 'rails'; write \"rails: …\" below it, indented"}));
  EXPECT_EQ(errors_of("log:\n  level:debug\n"),
            Strings({"f.yaml:1: log: is 'level:debug'; write a blank behind the colon: \"level: "
                     "debug\""}));
  EXPECT_EQ(
      errors_of("log:\n  - level: debug\n"),
      Strings({"f.yaml:1: log: is a list; write its keys below it, indented: level, format"}));
}

TEST(LoadConfig, AListThatIsNoneSaysHowItIsWritten) {
  const std::string how =
      "use network devices, or auto, as a single value or as a list: [first, second]";
  EXPECT_EQ(errors_of("transport:\n  rails:\n    first: eth0\n"),
            Strings({"f.yaml:2: transport.rails: is a map; " + how}));
}

TEST(LoadConfig, UnknownKeysNameTheNearest) {
  EXPECT_EQ(
      errors_of("", {"rail=eth0", "transprot.rails=eth0", "node=a"}),
      Strings({"--set rail: unknown key; did you mean 'transport.rails'?",
               "--set transprot.rails: unknown key; did you mean 'transport.rails'?",
               "--set node: unknown key; the keys of 'node' are " + keys_of_section("node")}));
  const std::string far = errors_of("", {"foo=1"}).at(0);
  EXPECT_THAT(far, HasSubstr("--set foo: unknown key; the sections are node, control, client"));
  EXPECT_THAT(far, HasSubstr("braidd --print-config shows all keys"));
}

TEST(LoadConfig, GarbageNeverCrashesOrPasses) {
  std::string bytes;
  for (int i = 0; i < 4096; ++i) bytes += static_cast<char>((i * 131 + i / 7) & 0xff);
  for (const std::string& garbage :
       {bytes, std::string(100'000, '['), std::string(10'000, '{'), std::string("\0\1\2", 3),
        std::string("a: &x [*x]"), std::string("*unknown"), std::string("!!binary |\n  ====")}) {
    EXPECT_FALSE(errors_of(garbage).empty()) << garbage.substr(0, 20);
  }
}

TEST(LoadConfig, BadSettingsAreExplained) {
  EXPECT_EQ(errors_of("", {"log.level", "=x", "log.levl=info", "log=info"}),
            Strings({"--set log.level: is no setting; use --set KEY=VALUE, such as log.level=debug",
                     "--set =x: is no setting; use --set KEY=VALUE, such as log.level=debug",
                     "--set log.levl: unknown key; did you mean 'log.level'?",
                     "--set log: unknown key; the keys of 'log' are level, format"}));
}

TEST(LoadConfig, ConflictsBlameWhatTheUserWrote) {
  EXPECT_EQ(errors_of("control:\n  listen: 192.0.2.1\n")
                .at(0)
                .find("f.yaml:2: control.listen: 192.0.2.1 is reachable by others"),
            0u);
  // The window is a default here; the chunk is what was set.
  EXPECT_EQ(
      errors_of("transport:\n  chunk_bytes: 1MiB\n")
          .at(0)
          .find("f.yaml:2: transport.chunk_bytes: transport.window_bytes: 512KiB has no room"),
      0u);
}

TEST(LoadConfig, ASettingCanSolveTheConflictOfAFile) {
  EXPECT_EQ(errors_of("control:\n  listen: 192.0.2.1\n", {"control.cluster_key_file=/k"}),
            Strings());
}

TEST(LoadConfig, ReadsAFile) {
  const TemporaryFile file("log: {level: trace}\n");
  const LoadedConfig loaded = load_config(file.path(), {});
  ASSERT_TRUE(loaded.is_ok()) << loaded.error_text();
  EXPECT_EQ(loaded.config.log.level, "trace");
}

TEST(LoadConfig, NamesAFileThatCannotBeRead) {
  EXPECT_EQ(load_config("/nonexistent/b.yaml", {"log.levl=x"}).errors,
            Strings({"/nonexistent/b.yaml: cannot be opened: No such file or directory",
                     "--set log.levl: unknown key; did you mean 'log.level'?"}));
  const TemporaryFile file("");
  EXPECT_EQ(load_config(file.directory(), {}).errors,
            Strings({file.directory() + ": cannot be read: Is a directory"}));
}

TEST(LoadConfig, RefusesAHugeFile) {
  const TemporaryFile file(std::string((1u << 20) + 1, '#'));
  EXPECT_EQ(load_config(file.path(), {}).errors,
            Strings({file.path() + ": is larger than 1048576 bytes"}));
}

}  // namespace
}  // namespace braid
