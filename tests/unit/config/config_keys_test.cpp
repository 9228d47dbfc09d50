// SPDX-License-Identifier: Apache-2.0
#include "config/config_keys.h"

#include <algorithm>
#include <set>

#include <gtest/gtest.h>

#include "engine/early_limits.h"

namespace braid {
namespace {

TEST(ConfigKeys, EveryKeyIsCompleteAndUnique) {
  std::set<std::string_view> names;
  DaemonConfig config;
  std::set<const void*> fields;
  for (const ConfigKey& key : config_keys()) {
    EXPECT_TRUE(names.insert(key.name).second) << key.name;
    EXPECT_EQ(std::count(key.name.begin(), key.name.end(), '.'), 1) << key.name;
    EXPECT_TRUE(key.help.ends_with('.')) << key.name;
    EXPECT_FALSE(format_config_range(key).empty()) << key.name;
    const bool is_text = key.kind == ConfigKind::Text || key.kind == ConfigKind::List;
    EXPECT_EQ(key.check != nullptr, is_text) << key.name;
    const void* field = std::visit([](auto* one) -> const void* { return one; }, key.field(config));
    EXPECT_TRUE(fields.insert(field).second) << key.name << " has another key's field";
  }
  const auto documented =
      std::ranges::count_if(config_keys(), [](const ConfigKey& key) { return !key.is_debug(); });
  EXPECT_EQ(documented, 40) << "a key that nobody will set is a constant";
}

TEST(ConfigKeys, EveryKeyBelongsToASection) {
  std::set<std::string_view> sections;
  for (const ConfigSection& section : config_sections()) sections.insert(section.name);
  std::set<std::string_view> used;
  for (const ConfigKey& key : config_keys()) used.insert(key.section());
  EXPECT_EQ(sections, used);
}

// The struct's initializers and the table's limits are written in two places.
TEST(ConfigKeys, DefaultsPassTheirOwnChecks) {
  for (const ConfigKey& key : config_keys()) {
    DaemonConfig config;
    const Status status = set_config_value(key, format_config_value(key, DaemonConfig{}), config);
    EXPECT_TRUE(status.is_ok()) << key.name << ": " << status.message();
    EXPECT_EQ(config, DaemonConfig{}) << key.name;
  }
}

TEST(ConfigKeys, LimitsFitTheirFields) {
  for (const ConfigKey& key : config_keys()) {
    if (key.kind != ConfigKind::Integer && key.kind != ConfigKind::Bytes) continue;
    DaemonConfig config;
    EXPECT_TRUE(set_config_value(key, std::to_string(key.min), config).is_ok()) << key.name;
    EXPECT_TRUE(set_config_value(key, std::to_string(key.max), config).is_ok()) << key.name;
    EXPECT_FALSE(set_config_value(key, std::to_string(key.max + 1), config).is_ok()) << key.name;
  }
}

TEST(ConfigKeys, AFailedSetChangesNothing) {
  for (const ConfigKey& key : config_keys()) {
    DaemonConfig config;
    EXPECT_FALSE(set_config_value(key, "no such thing\n", config).is_ok()) << key.name;
    EXPECT_EQ(config, DaemonConfig{}) << key.name;
  }
}

TEST(ConfigKeys, ListsAreChecked) {
  const ConfigKey& rails = *find_config_key("transport.rails");
  DaemonConfig config;
  EXPECT_TRUE(set_config_value(rails, "[eth0, eth1]", config).is_ok());
  EXPECT_EQ(config.transport.rails, std::vector<std::string>({"eth0", "eth1"}));
  EXPECT_EQ(set_config_value(rails, "[]", config).message(),
            "is an empty list; use network devices, or auto");
  EXPECT_EQ(set_config_value(rails, "eth0,eth0", config).message(),
            "has 'eth0' twice; name it once");
  EXPECT_FALSE(set_config_value(rails, "eth0,auto", config).is_ok());
  EXPECT_FALSE(set_config_value(rails, "eth0,", config).is_ok());
}

TEST(SuggestConfigKey, ElseListsWhatThereIs) {
  EXPECT_EQ(suggest_config_key("metrics.prometheus_endpoint"),
            "the keys of 'metrics' are address, port");
  EXPECT_EQ(suggest_config_key("zookeeper"),
            "the sections are node, control, client, transport, collective, plan, tune, guard, "
            "metrics, page, gpu, log, debug; braidd --print-config shows all keys");
}

TEST(BytesOrAuto, IsASizeOrAuto) {
  DaemonConfig config;
  const ConfigKey& key = *find_config_key("collective.two_hops_bytes");
  EXPECT_EQ(format_config_value(key, config), "auto");
  EXPECT_TRUE(set_config_value(key, "0", config));
  EXPECT_EQ(config.collective.two_hops_bytes, 0u);
  EXPECT_EQ(format_config_value(key, config), "0");
  EXPECT_TRUE(set_config_value(key, "1GiB", config));
  EXPECT_EQ(config.collective.two_hops_bytes, 1u << 30);
  EXPECT_EQ(format_config_value(key, config), "1GiB");
  EXPECT_EQ(set_config_value(key, "2GiB", config).message(),
            "2GiB is out of range; use 0 to 1GiB; or auto");
  EXPECT_EQ(config.collective.two_hops_bytes, 1u << 30);
  EXPECT_TRUE(set_config_value(key, "auto", config));
  EXPECT_EQ(config.collective.two_hops_bytes, std::nullopt);
}

// How much less more nodes can have is not known before there is a job.
TEST(DirectBytes, AreAtMostWhatTwoNodesCanHave) {
  DaemonConfig config;
  const ConfigKey& key = *find_config_key("collective.direct_bytes");
  EXPECT_TRUE(set_config_value(key, "4MiB", config));
  EXPECT_EQ(config.collective.direct_bytes, direct_bytes_max(2));
  EXPECT_EQ(set_config_value(key, "4194305", config).message(),
            "4194305 is out of range; use 0 to 4MiB; or auto");
}

}  // namespace
}  // namespace braid
