// SPDX-License-Identifier: Apache-2.0
#include "config/load.h"

#include <gmock/gmock.h>

#include "config/config_keys.h"
#include "config/personal.h"
#include "temporary_file.h"

namespace braid {
namespace {

using Strings = std::vector<std::string>;
using ::testing::HasSubstr;
using ::testing::Lt;

Strings errors_of(std::string_view yaml, const Strings& settings = {}) {
  return parse_config(yaml, "f.yaml", settings).errors;
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

TEST(LoadConfig, TheKernelMayChoosePorts) {
  const LoadedConfig loaded =
      parse_config("metrics: {port: auto}\n", "f.yaml", {"control.port=auto"});
  ASSERT_TRUE(loaded.is_ok()) << loaded.error_text();
  EXPECT_EQ(loaded.config.metrics.port, std::nullopt);
  EXPECT_EQ(loaded.config.control.port, std::nullopt);
}

TEST(LoadConfig, WhatIsSetBeatsOtherDefaultsToo) {
  const DaemonConfig defaults = personal_defaults("/mine");
  const LoadedConfig loaded = load_config(std::nullopt, {"metrics.port=0"}, {}, defaults);
  ASSERT_TRUE(loaded.is_ok()) << loaded.error_text();
  DaemonConfig expected = defaults;
  expected.metrics.port = 0;
  EXPECT_EQ(loaded.config, expected);
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
                     "f.yaml:4: control.port: 70000 is out of range; use 1 to 65535; or auto",
                     "f.yaml:6: transport.flows_per_link: 'many' is not a whole number; use one "
                     "from 0 to 128",
                     "f.yaml:8: bogus: unknown key; the sections are node, control, client, "
                     "transport, collective, plan, tune, guard, metrics, page, gpu, log, "
                     "debug; braidd --print-config shows all keys",
                     "f.yaml:9: log.level: 'loud' is no log level; use trace, debug, info, warn or "
                     "error",
                     "--set metrics.port: 'x' is not a whole number; use one from 0 to 65535; or "
                     "auto"}));
}

// Where it is, what it is, and what would be right.
TEST(LoadConfig, WhatIsNoConfigurationIsExplained) {
  const std::pair<std::string, Strings> cases[] = {
      {"metrics:\n  port: [1]\n", {"f.yaml:2: metrics.port: is a list", "0 to 65535"}},
      {"log:\n  level: {a: b}\n", {"f.yaml:2: log.level: is a map", "trace, debug"}},
      {"log:\n  level:\n", {"f.yaml:2: log.level: is nothing", "trace, debug"}},
      {"transport:\n  rails: [eth0, [eth1]]\n",
       {"f.yaml:2: transport.rails: has a list in its list"}},
      {"transport:\n  rails:\n    first: eth0\n",
       {"f.yaml:2: transport.rails: is a map", "[first, second]"}},
      {"log: debug\n", {"f.yaml:1: log: is 'debug'", "indented: level, format"}},
      {"log:\n  [a]: b\n", {"f.yaml:2: log: has a list as a key"}},
      {"log:\n  level: info\n  level: debug\n", {"f.yaml:3: log.level: stands in line 2 too"}},
      {"log:\n  level: info\nmetrics:\nlog:\n", {"f.yaml:4: log: stands in line 1 too"}},
      {"log.level: debug\n",
       {"f.yaml:1: log.level: is written with a dot", "\"log:\"", "\"level: …\""}},
      {"\n- a\n- b\n", {"f.yaml:2: the document is a list"}},
      {"hello", {"is a single value"}},
      {"log:\n---\nlog:\n", {"there are 2 documents"}},
      {"log:\n  level: [debug\n", {"f.yaml:", "is not YAML"}},
      {"log: {level\n", {"is not YAML"}},
      {"log:\n\tlevel: debug\n", {"f.yaml:2: is not YAML", "indented with a tab"}},
      {"log:\n  level: debug\n \tformat: json\n", {"f.yaml:3: is not YAML"}},
      {"transport: rails: eth0\n",
       {"f.yaml:1: is not YAML", "at 'transport: rails: eth0'", "key: value"}},
      {"control:\n  listen: ::\n", {"f.yaml:2: is not YAML", "put the address in quotes: \"::\""}},
      {"transport:\n  rails: [eth0\n", {"a list that begins with [ ends with ]"}},
      {"log: {level: debug\n", {"what begins with { ends with }"}},
      {"log:\n  level: @debug\n", {"in quotes"}},
      {"transport: rails\n", {"f.yaml:1: transport: is 'rails'", "\"rails: …\" below it"}},
      {"log:\n  level:debug\n", {"f.yaml:1: log: is 'level:debug'", "a blank behind the colon"}},
      {"log:\n  - level: debug\n", {"f.yaml:1: log: is a list", "indented: level, format"}}};
  for (const auto& [yaml, parts] : cases) {
    const Strings errors = errors_of(yaml);
    ASSERT_EQ(errors.size(), 1u) << yaml;
    for (const std::string& part : parts) EXPECT_THAT(errors[0], HasSubstr(part));
  }
  EXPECT_THAT(errors_of("log:\n  level: @" + std::string(10'000, 'x')).at(0).size(), Lt(400u));
}

TEST(LoadConfig, NamesAFileThatCannotBeRead) {
  const auto error_of = [](const std::string& path) {
    const Strings errors = load_config(path, {}).errors;
    return errors.empty() ? "none" : errors[0];
  };
  EXPECT_THAT(error_of("/nonexistent/b.yaml"), HasSubstr("/nonexistent/b.yaml: cannot be opened"));
  const TemporaryFile file(std::string((1u << 20) + 1, '#'));
  EXPECT_THAT(error_of(file.directory()), HasSubstr(file.directory() + ": cannot be read"));
  EXPECT_THAT(error_of(file.path()), HasSubstr(file.path() + ": is larger than 1048576 bytes"));
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

}  // namespace
}  // namespace braid
