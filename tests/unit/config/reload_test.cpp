// SPDX-License-Identifier: Apache-2.0
#include "config/reload.h"

#include <gtest/gtest.h>

#include "config/config_keys.h"

namespace braid {
namespace {

TEST(DiffConfig, EqualConfigsDoNotDiffer) {
  EXPECT_TRUE(diff_config(DaemonConfig{}, DaemonConfig{}).empty());
}

TEST(DiffConfig, TellsReloadableKeysFromTheOthers) {
  DaemonConfig after;
  after.log.level = "debug";
  after.transport.rails = {"eth0", "eth1"};
  after.collective.operation_timeout_ms = 1000;
  const auto changes = diff_config(DaemonConfig{}, after);
  ASSERT_EQ(changes.size(), 3u);
  EXPECT_EQ(changes[0].key, "transport.rails");
  EXPECT_EQ(changes[0].before, "[auto]");
  EXPECT_EQ(changes[0].after, "[eth0, eth1]");
  EXPECT_FALSE(changes[0].reloadable);
  EXPECT_EQ(changes[1].key, "collective.operation_timeout_ms");
  EXPECT_TRUE(changes[1].reloadable);
  EXPECT_EQ(changes[2].key, "log.level");
  EXPECT_TRUE(changes[2].reloadable);
}

TEST(DiffConfig, NoticesEveryKey) {
  for (const ConfigKey& key : config_keys()) {
    DaemonConfig after;
    std::visit(
        [](auto* field) {
          using Value = std::remove_pointer_t<decltype(field)>;
          if constexpr (std::is_arithmetic_v<Value>) {
            *field = static_cast<Value>(*field + 1);
          } else if constexpr (std::is_same_v<Value, std::string>) {
            *field += "x";
          } else if constexpr (std::is_same_v<Value, std::optional<uint64_t>> ||
                               std::is_same_v<Value, std::optional<uint16_t>>) {
            *field = 1;
          } else {
            field->push_back("x");
          }
        },
        key.field(after));
    const auto changes = diff_config(DaemonConfig{}, after);
    ASSERT_EQ(changes.size(), 1u) << key.name;
    EXPECT_EQ(changes[0].key, key.name);
  }
}

TEST(MergeReloadable, TakesOnlyWhatCanBeReloaded) {
  DaemonConfig loaded;
  loaded.log.level = "debug";
  loaded.collective.operation_timeout_ms = 1000;
  loaded.control.port = 1;
  loaded.transport.rails = {"eth9"};
  DaemonConfig expected;
  expected.log.level = "debug";
  expected.collective.operation_timeout_ms = 1000;
  EXPECT_EQ(merge_reloadable(DaemonConfig{}, loaded), expected);
}

}  // namespace
}  // namespace braid
