// SPDX-License-Identifier: Apache-2.0
#include "config/checks.h"

#include <gtest/gtest.h>

#include "config/value.h"

namespace braid {
namespace {

TEST(CheckAddress, TakesBothFamilies) {
  for (const char* text : {"192.0.2.7", "0.0.0.0", "::", "::1", "2001:db8::7", "fe80::7%eth0"})
    EXPECT_TRUE(check_address(text).is_ok()) << text;
  for (const char* text : {"", "auto", "localhost", "192.0.2", "192.0.2.256", "192.0.2.7:80",
                           "fe80::7", "[::1]", "2001:db8::7%eth0"}) {
    EXPECT_FALSE(check_address(text).is_ok()) << text;
  }
  EXPECT_EQ(
      check_address_or_auto("[2001:db8::7]:7410").message(),
      "'[2001:db8::7]:7410' has a port, and an address alone is wanted here; use 2001:db8::7, "
      "or auto");
  EXPECT_TRUE(check_address_or_auto("auto").is_ok());
  EXPECT_FALSE(check_address_or_auto("Auto").is_ok());
}

TEST(CheckSocketPath, KnowsTheLimitOfUnixSockets) {
  EXPECT_TRUE(check_socket_path("/" + std::string(106, 'a')).is_ok());
  const Status status = check_socket_path("/" + std::string(107, 'a'));
  EXPECT_EQ(status.message(), "is 108 bytes long; a socket's path has 107 at most");
  for (const char* text : {"", "braidd.sock", "/run/braid/", "/s ", "@abstract"}) {
    EXPECT_FALSE(check_socket_path(text).is_ok()) << text;
  }
}

TEST(CheckNames, RefuseBlanksAndNothing) {
  for (const auto check : {check_node_name, check_rail, check_transport}) {
    EXPECT_TRUE(check("abc0").is_ok());
    EXPECT_FALSE(check("").is_ok());
    EXPECT_FALSE(check("a b").is_ok());
    EXPECT_FALSE(check("a\n").is_ok());
  }
  EXPECT_TRUE(check_group("").is_ok());
  EXPECT_TRUE(check_group("braid").is_ok());
  EXPECT_FALSE(check_group("a b").is_ok());
  EXPECT_TRUE(check_rail("mlx5_0:1").is_ok());
  EXPECT_TRUE(check_transport("rc_v").is_ok());
  EXPECT_FALSE(check_transport("TCP").is_ok());
  EXPECT_FALSE(check_node_name(std::string(256, 'a')).is_ok());
}

TEST(CheckRack, IsANameOrNothing) {
  EXPECT_TRUE(check_polling("always").is_ok());
  EXPECT_EQ(check_polling("often").message(), "'often' is none of off, adaptive, always");
  EXPECT_TRUE(check_rack("").is_ok());
  EXPECT_TRUE(check_rack("row-3/rack-17").is_ok());
  EXPECT_TRUE(check_rack(std::string(255, 'a')).is_ok());
  EXPECT_FALSE(check_rack(std::string(256, 'a')).is_ok());
  EXPECT_EQ(check_rack("rack 7").message(),
            "'rack 7' is not a rack's name; use up to 255 characters without blanks");
}

TEST(CheckTuneMode, NamesTheModes) {
  for (const char* mode : {"on", "portfolio", "off"}) EXPECT_TRUE(check_tune_mode(mode)) << mode;
  EXPECT_EQ(check_tune_mode("yes").message(), "'yes' is none of on, portfolio, off");
}

TEST(CheckEncryption, IsOnOrOff) {
  EXPECT_TRUE(check_encryption("on"));
  EXPECT_TRUE(check_encryption("off"));
  EXPECT_EQ(check_encryption("aes").message(), "'aes' is neither on nor off");
}

TEST(CheckPageAccess, TakesWordsAndAbsolutePaths) {
  for (const char* access : {"off", "loopback", "/etc/braid/page.token"})
    EXPECT_TRUE(check_page_access(access)) << access;
  for (const char* access : {"", "token", "page.token", "/etc/braid/"})
    EXPECT_FALSE(check_page_access(access)) << access;
}

TEST(CheckGuardLimit, IsANameAndANumber) {
  for (const char* limit : {"none", "residual=100", "cosine=0.9", "saturation=1"})
    EXPECT_TRUE(check_guard_limit(limit)) << limit;
  for (const char* limit : {"", "saturation", "saturation=", "saturation=0", "saturation=1.5",
                            "cosine=-1", "residual=inf", "residual=nan", "loss=0.5", "cosine=0.9x"})
    EXPECT_FALSE(check_guard_limit(limit)) << limit;
  EXPECT_EQ(parse_guard_limit("cosine=0.25")->value, 0.25);
}

TEST(CheckClusterKeyFile, TakesAbsolutePathsAndNothing) {
  EXPECT_TRUE(check_cluster_key_file("").is_ok());
  EXPECT_TRUE(check_cluster_key_file("/etc/braid/cluster.key").is_ok());
  EXPECT_FALSE(check_cluster_key_file("cluster.key").is_ok());
}

TEST(CheckLevel, NamesTheLevels) {
  EXPECT_TRUE(check_level("trace").is_ok());
  EXPECT_EQ(check_level("loud").message(),
            "'loud' is no log level; use trace, debug, info, warn or error");
}

TEST(CheckLogFormat, NamesTheFormats) {
  for (const char* format : {"auto", "text", "json"})
    EXPECT_TRUE(check_log_format(format).is_ok()) << format;
  EXPECT_EQ(check_log_format("xml").message(), "'xml' is no log format; use auto, text or json");
}

TEST(Conflicts, DefaultsHaveNone) { EXPECT_TRUE(find_conflicts(DaemonConfig{}).empty()); }

// Each case: a change of the defaults, and the key that is blamed for it.
struct ConflictCase {
  const char* name;
  void (*change)(DaemonConfig&);
  const char* key;
};

class ConflictTest : public testing::TestWithParam<ConflictCase> {};

TEST_P(ConflictTest, IsFound) {
  DaemonConfig config;
  GetParam().change(config);
  const auto conflicts = find_conflicts(config);
  ASSERT_EQ(conflicts.size(), 1u);
  EXPECT_EQ(conflicts[0].key, GetParam().key);
}

INSTANTIATE_TEST_SUITE_P(
    All, ConflictTest,
    testing::Values(
        ConflictCase{"ListensWithoutKey", [](DaemonConfig& c) { c.control.listen = "192.0.2.1"; },
                     "control.listen"},
        ConflictCase{"ListensEverywhereWithoutKey",
                     [](DaemonConfig& c) { c.control.listen = "0.0.0.0"; }, "control.listen"},
        ConflictCase{"ListensEverywhereInV6WithoutKey",
                     [](DaemonConfig& c) { c.control.listen = "::"; }, "control.listen"},
        ConflictCase{"OddChunk", [](DaemonConfig& c) { c.transport.chunk_bytes = 100'000; },
                     "transport.chunk_bytes"},
        ConflictCase{"OddUnit", [](DaemonConfig& c) { c.collective.unit_bytes = 1'000'001; },
                     "collective.unit_bytes"},
        ConflictCase{
            "WindowBelowChunk",
            [](DaemonConfig& c) { c.transport.window_bytes = c.transport.chunk_bytes - 1; },
            "transport.window_bytes"},
        ConflictCase{
            "UnitBelowChunk",
            [](DaemonConfig& c) { c.collective.unit_bytes = c.transport.chunk_bytes - 64; },
            "collective.unit_bytes"},
        ConflictCase{"SamePorts", [](DaemonConfig& c) { c.metrics.port = c.control.port; },
                     "metrics.port"},
        ConflictCase{"EncryptionWithoutKey", [](DaemonConfig& c) { c.transport.encryption = "on"; },
                     "transport.encryption"},
        ConflictCase{"EncryptionOverUcx",
                     [](DaemonConfig& c) {
                       c.control.cluster_key_file = "/etc/braid/cluster.key";
                       c.transport.encryption = "on";
                       c.transport.tcp = "ucx";
                     },
                     "transport.encryption"},
        ConflictCase{"EncryptionOverRdma",
                     [](DaemonConfig& c) {
                       c.control.cluster_key_file = "/etc/braid/cluster.key";
                       c.transport.encryption = "on";
                       c.transport.transports = {"rc"};
                     },
                     "transport.encryption"},
        ConflictCase{"LimitTwice",
                     [](DaemonConfig& c) {
                       c.guard.limits = {"cosine=0.5", "cosine=0.6"};
                     },
                     "guard.limits"},
        ConflictCase{"NoneAmongLimits",
                     [](DaemonConfig& c) {
                       c.guard.limits = {"none", "cosine=0.6"};
                     },
                     "guard.limits"},
        ConflictCase{"NoneAmongPins",
                     [](DaemonConfig& c) {
                       c.debug.pin = {"none", "streams"};
                     },
                     "debug.pin"}),
    [](const auto& test) { return test.param.name; });

TEST(Conflicts, AKeyOrLoopbackMakesListeningRight) {
  DaemonConfig config;
  config.control.listen = "192.0.2.1";
  config.control.cluster_key_file = "/etc/braid/cluster.key";
  EXPECT_TRUE(find_conflicts(config).empty());
  config.transport.encryption = "on";
  EXPECT_TRUE(find_conflicts(config).empty());
  config.transport.encryption = "off";
  config.control.cluster_key_file.clear();
  for (const char* address : {"127.0.0.2", "::1"}) {
    config.control.listen = address;
    EXPECT_TRUE(find_conflicts(config).empty()) << address;
  }
}

}  // namespace
}  // namespace braid
