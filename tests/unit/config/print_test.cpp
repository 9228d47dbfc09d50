// SPDX-License-Identifier: Apache-2.0
#include "config/print.h"

#include <sstream>

#include <gtest/gtest.h>

#include "config/config_keys.h"
#include "config/load.h"

namespace braid {
namespace {

DaemonConfig changed_everywhere() {
  DaemonConfig config;
  config.node = {"yes", "192.0.2.1", "r#1:"};  // YAML has opinions about this word
  config.node.state_directory = "/var/tmp/state";
  config.control = {7000, "192.0.2.2", "/etc/braid/a#b: c.key", 1000};
  config.client = {"/tmp/s", "users", 5ull << 20, 7};
  config.transport = {{"eth0", "eth1"}, {"rc", "tcp"}, "ucx", "off", 20000, 3, 2,
                      64u << 10,        1u << 20};
  config.collective = {1ull << 20, 2, 4096, 6000, 8192, 1234, 3ull << 30};
  config.tune = {kPortfolio};
  config.guard = {{"residual=100", "cosine=0.125"}};
  config.metrics = {"192.0.2.1", 0};
  config.page = {"/etc/braid/page.token"};
  config.log = {"trace", "json"};
  config.debug.codecs = {"bf16", "int8"};
  config.debug.pin = {"streams"};
  config.debug.min_gain_percent = 50;
  return config;
}

TEST(PrintConfig, IsReadBackAsTheSame) {
  for (const DaemonConfig& config : {DaemonConfig{}, changed_everywhere()}) {
    const LoadedConfig loaded = parse_config(print_config(config), "printed", {});
    EXPECT_TRUE(loaded.is_ok()) << loaded.error_text();
    EXPECT_EQ(loaded.config, config);
  }
}

TEST(PrintConfig, HasEveryKeyWithItsHelp) {
  const std::string printed = print_config(DaemonConfig{});
  for (const ConfigKey& key : config_keys()) {
    EXPECT_NE(printed.find(std::string("\n  ") + std::string(key.leaf()) + ": "), std::string::npos)
        << key.name;
    EXPECT_NE(printed.find(std::string("# ") + std::string(key.help.substr(0, 20))),
              std::string::npos)
        << key.name;
  }
}

TEST(PrintExampleConfig, SetsNothing) {
  const LoadedConfig loaded = parse_config(print_example_config(), "example", {});
  EXPECT_TRUE(loaded.is_ok()) << loaded.error_text();
  EXPECT_EQ(loaded.config, DaemonConfig{});
}

TEST(PrintExampleConfig, AndTheDocumentHaveNoKeysForTests) {
  for (const std::string& text : {print_example_config(), print_config_markdown()}) {
    EXPECT_EQ(text.find("debug:"), std::string::npos);
    EXPECT_EQ(text.find("debug."), std::string::npos);
    EXPECT_NE(text.find("state_directory"), std::string::npos);
  }
}

TEST(PrintExampleConfig, IsRightWhenUncommented) {
  std::string yaml;
  std::istringstream lines(print_example_config());
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("  #") && !line.starts_with("  # ")) line.erase(2, 1);
    yaml += line + '\n';
  }
  EXPECT_EQ(yaml.find("  #level"), std::string::npos);
  const LoadedConfig loaded = parse_config(yaml, "example", {"log.level=debug"});
  EXPECT_TRUE(loaded.is_ok()) << loaded.error_text();
}

}  // namespace
}  // namespace braid
