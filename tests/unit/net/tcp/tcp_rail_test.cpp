// SPDX-License-Identifier: Apache-2.0
#include "net/tcp/tcp_rail.h"

#include <gmock/gmock.h>

namespace braid {
namespace {

using ::testing::ElementsAre;

SocketAddress address_of(const std::string& text) { return *SocketAddress::parse(text, 0); }

std::vector<std::string> preferred(const std::string& node_address) {
  std::vector<SocketAddress> addresses = {address_of("192.0.2.1"), address_of("192.0.2.2"),
                                          address_of("2001:db8::1"), address_of("2001:db8::2"),
                                          address_of("fe80::1%lo")};
  prefer_for_flows(addresses, node_address);
  std::vector<std::string> told;
  for (const SocketAddress& one : addresses) told.push_back(one.host());
  return told;
}

TEST(TcpRailTest, FlowsAreWaitedForAtTheNodesAddressOrAtOneOfItsFamily) {
  EXPECT_THAT(preferred("192.0.2.2"),
              ElementsAre("192.0.2.2", "192.0.2.1", "2001:db8::1", "2001:db8::2", "fe80::1%lo"));
  EXPECT_THAT(preferred("2001:db8:0::2"),
              ElementsAre("2001:db8::2", "2001:db8::1", "fe80::1%lo", "192.0.2.1", "192.0.2.2"));
  EXPECT_THAT(preferred("2001:db8::99").front(), "2001:db8::1");
  EXPECT_THAT(preferred("fe80::1%lo").front(), "fe80::1%lo");
  EXPECT_THAT(preferred("198.51.100.1").front(), "192.0.2.1");
  EXPECT_THAT(preferred("node-7").front(), "192.0.2.1");
}

TEST(TcpRailTest, ARailWithoutAnAddressOfTheOthersFamilyIsNamed) {
  const TcpRail rail{"lo", {address_of("127.0.0.1")}, false};
  EXPECT_TRUE(rail.socket_to(address_of("192.0.2.7").with_port(7410)).is_ok());
  EXPECT_EQ(rail.socket_to(address_of("2001:db8::7").with_port(7410)).status().message(),
            "rail lo has no IPv6 address, and the other node's flows are at 2001:db8::7: give the "
            "rail one, or set node.address of all nodes to addresses of one family");
  const TcpRail of_v6{"lo", {address_of("::1")}, false};
  EXPECT_EQ(of_v6.socket_to(address_of("192.0.2.7").with_port(7410))
                .status()
                .message()
                .find("rail lo has no IPv4 address, "),
            0u);
}

TEST(TcpRailTest, FindsTheAddressesOfADevice) {
  const auto lo = find_tcp_rail("lo", "127.0.0.1");
  ASSERT_TRUE(lo.is_ok());
  EXPECT_EQ(lo->addresses.front(), address_of("127.0.0.1"));
  EXPECT_EQ(find_tcp_rail("nosuch0", "127.0.0.1").status().code(), StatusCode::NotFound);
}

}  // namespace
}  // namespace braid
