// SPDX-License-Identifier: Apache-2.0
#include "config/environment.h"

#include <string>
#include <vector>

#include <gmock/gmock.h>

#include "config/load.h"

namespace braid {
namespace {

using Strings = std::vector<std::string>;

TEST(Environment, EveryKeyHasAVariableOfItsOwn) {
  for (const ConfigKey& key : config_keys())
    EXPECT_EQ(find_environment_key(environment_name(key)), &key) << environment_name(key);
  EXPECT_EQ(environment_name(*find_config_key("transport.flows_per_link")),
            "BRAIDD_TRANSPORT_FLOWS_PER_LINK");
  EXPECT_EQ(find_environment_key("BRAIDD_LOG"), nullptr);
  EXPECT_EQ(find_environment_key("braidd_log_level"), nullptr);
}

TEST(Environment, OnlyWhatIsMeantForTheDaemonIsTaken) {
  const char* environment[] = {"PATH=/bin",
                               "BRAIDD_LOG_LEVEL=debug",
                               "BRAID_SOCKET=/s",
                               "BRAIDD_PORT=tcp://10.0.0.1:7410",
                               "BRAIDD_PORT_7410_TCP_ADDR=10.0.0.1",
                               "BRAIDD_SERVICE_HOST=10.0.0.1",
                               "BRAIDD_BOGUS=1",
                               nullptr};
  EXPECT_EQ(select_environment(environment), Strings({"BRAIDD_LOG_LEVEL=debug", "BRAIDD_BOGUS=1"}));
}

TEST(Environment, BeatsTheFileAndIsBeatenBySettings) {
  const LoadedConfig loaded =
      parse_config("log: {level: debug}\nmetrics: {port: 1}\n", "f.yaml", {"metrics.port=3"},
                   {"BRAIDD_LOG_LEVEL=warn", "BRAIDD_METRICS_PORT=2",
                    "BRAIDD_TRANSPORT_RAILS=eth0, eth1", "BRAIDD_CLIENT_GROUP="});
  ASSERT_TRUE(loaded.is_ok()) << loaded.error_text();
  EXPECT_EQ(loaded.config.log.level, "warn");
  EXPECT_EQ(loaded.config.metrics.port, 3);
  EXPECT_EQ(loaded.config.transport.rails, Strings({"eth0", "eth1"}));
  EXPECT_EQ(loaded.config.client.group, "");
}

TEST(Environment, MistakesNameTheVariableAndWhatIsRight) {
  EXPECT_EQ(parse_config("", "", {},
                         {"BRAIDD_LOG_LEVEL=loud", "BRAIDD_LOG_LEVL=info", "BRAIDD_RAILS=eth0",
                          "BRAIDD_SOMETHING_ELSE=1"})
                .errors,
            Strings({"environment BRAIDD_LOG_LEVEL: 'loud' is no log level; use trace, debug, "
                     "info, warn or error",
                     "environment BRAIDD_LOG_LEVL: sets no key; did you mean BRAIDD_LOG_LEVEL?",
                     "environment BRAIDD_RAILS: sets no key; did you mean BRAIDD_TRANSPORT_RAILS?",
                     "environment BRAIDD_SOMETHING_ELSE: sets no key; log.level is "
                     "BRAIDD_LOG_LEVEL; braidd --print-config shows all keys"}));
}

TEST(Environment, WhatIsSaidOfAKeyTellsWhereItWasSet) {
  const LoadedConfig loaded = parse_config("transport:\n  rails: eth9\n", "f.yaml",
                                           {"metrics.port=1"}, {"BRAIDD_CONTROL_PORT=2"});
  const auto told = [&](const std::string& message) {
    return tell_origin(message, loaded.origins);
  };
  EXPECT_EQ(told("transport.rails: is bad"), "f.yaml:2: transport.rails: is bad");
  EXPECT_EQ(told("metrics.port: 1: is bad"), "--set metrics.port: 1: is bad");
  EXPECT_EQ(told("control.port: is bad"), "environment BRAIDD_CONTROL_PORT: is bad");
  EXPECT_EQ(told("client.group: is bad"), "client.group (its default): is bad");
  EXPECT_EQ(told("rail 'x' cannot be used: why"), "rail 'x' cannot be used: why");
  EXPECT_EQ(told("nothing"), "nothing");
}

}  // namespace
}  // namespace braid
