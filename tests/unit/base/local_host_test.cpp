// SPDX-License-Identifier: Apache-2.0
#include "base/local_host.h"

#include <array>

#include <gtest/gtest.h>
#include <unistd.h>

namespace braid {
namespace {

std::string own_name() {
  std::array<char, 256> name{};
  EXPECT_EQ(::gethostname(name.data(), name.size() - 1), 0);
  return name.data();
}

TEST(LocalHostTest, KnowsLoopbackHosts) {
  EXPECT_TRUE(is_loopback_host("localhost"));
  EXPECT_TRUE(is_loopback_host("127.0.0.1"));
  EXPECT_TRUE(is_loopback_host("127.255.3.4"));
  EXPECT_TRUE(is_loopback_host("::1"));
  EXPECT_FALSE(is_loopback_host("128.0.0.1"));
  EXPECT_FALSE(is_loopback_host("localhost.example"));
  EXPECT_FALSE(is_loopback_host(""));
}

TEST(LocalHostTest, KnowsThisHostsAddressesAndName) {
  EXPECT_TRUE(is_local_host("127.0.0.1"));
  EXPECT_TRUE(is_local_host("127.0.0.53"));
  EXPECT_TRUE(is_local_host(own_name()));
  EXPECT_TRUE(is_local_host(own_name() + ".example.org"));
}

TEST(LocalHostTest, NamesTheInterfaceOfAnAddress) {
  EXPECT_EQ(own_interface_of("127.0.0.1"), "lo");
  EXPECT_EQ(own_interface_of("192.0.2.1"), "");
  EXPECT_EQ(own_interface_of("localhost"), "");
  EXPECT_EQ(own_interface_of("2001:db8::1"), "");
  EXPECT_EQ(own_interface_of("fe80::77%lo"), "");
  EXPECT_EQ(own_interface_of("::1"), is_local_host("::1") ? "lo" : "");
}

TEST(LocalHostTest, ListsInterfacesThatMayLeadToOthers) {
  const std::string interfaces = own_interfaces();
  EXPECT_FALSE(interfaces.empty());
  EXPECT_EQ(interfaces.find("127.0.0.1"), std::string::npos) << interfaces;
  EXPECT_EQ(interfaces.find("::1"), std::string::npos) << interfaces;
}

TEST(LocalHostTest, KnowsNoWayOutToItself) {
  EXPECT_EQ(own_end_towards("127.0.0.1"), "");
  EXPECT_EQ(own_end_towards("localhost"), "");
  EXPECT_EQ(own_end_towards("::1"), "");
}

TEST(LocalHostTest, DoesNotTakeOthersForThisHost) {
  EXPECT_FALSE(is_local_host("192.0.2.1"));  // reserved for documentation
  EXPECT_FALSE(is_local_host("2001:db8::1"));
  EXPECT_FALSE(is_local_host("fe80::77%lo"));
  EXPECT_FALSE(is_local_host("255.255.255.255"));
  EXPECT_FALSE(is_local_host(own_name() + "x"));
  EXPECT_FALSE(is_local_host(""));
}

}  // namespace
}  // namespace braid
