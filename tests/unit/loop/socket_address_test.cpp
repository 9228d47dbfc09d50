// SPDX-License-Identifier: Apache-2.0
#include "loop/socket_address.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>

namespace braid {
namespace {

std::string text_of(const std::string& numeric, uint16_t port) {
  const auto address = SocketAddress::parse(numeric, port);
  return address ? address->to_string() : "none";
}

TEST(SocketAddressTest, ReadsNumericAddresses) {
  EXPECT_EQ(text_of("10.0.0.1", 7410), "10.0.0.1:7410");
  EXPECT_EQ(text_of("::1", 80), "[::1]:80");
  EXPECT_EQ(text_of("2001:db8:0:0::5", 1), "[2001:db8::5]:1");
}

TEST(SocketAddressTest, TakesNoNames) {
  EXPECT_EQ(text_of("localhost", 1), "none");
  EXPECT_EQ(text_of("", 1), "none");
  EXPECT_EQ(text_of("10.0.0", 1), "none");
  EXPECT_EQ(text_of("10.0.0.256", 1), "none");
}

TEST(SocketAddressTest, AMappedAddressIsTheAddressThatIsMapped) {
  EXPECT_EQ(text_of("::ffff:10.0.0.1", 7410), "10.0.0.1:7410");
  EXPECT_EQ(*SocketAddress::parse("::ffff:10.0.0.1", 1), *SocketAddress::parse("10.0.0.1", 1));
}

TEST(SocketAddressTest, ComparesHostAndPort) {
  const auto address = SocketAddress::parse("10.0.0.1", 1);
  EXPECT_TRUE(*address == *SocketAddress::parse("10.0.0.1", 1));
  EXPECT_FALSE(*address == *SocketAddress::parse("10.0.0.1", 2));
  EXPECT_FALSE(*address == *SocketAddress::parse("10.0.0.2", 1));
  EXPECT_FALSE(*SocketAddress::parse("::1", 1) == *SocketAddress::parse("127.0.0.1", 1));
}

TEST(SocketAddressTest, KnowsLoopbackAndAny) {
  EXPECT_TRUE(SocketAddress::parse("127.0.0.1", 1)->is_loopback());
  EXPECT_TRUE(SocketAddress::parse("127.8.9.1", 1)->is_loopback());
  EXPECT_TRUE(SocketAddress::parse("::1", 1)->is_loopback());
  EXPECT_FALSE(SocketAddress::parse("128.0.0.1", 1)->is_loopback());
  EXPECT_TRUE(SocketAddress::parse("0.0.0.0", 1)->is_any());
  EXPECT_TRUE(SocketAddress::parse("::", 1)->is_any());
  EXPECT_FALSE(SocketAddress::parse("::1", 1)->is_any());
}

TEST(SocketAddressTest, TakesOnlyInternetAddressesFromTheKernel) {
  sockaddr_storage storage{};
  storage.ss_family = AF_UNIX;
  EXPECT_EQ(SocketAddress::from(reinterpret_cast<const sockaddr*>(&storage)), std::nullopt);
  sockaddr_in v4{};
  v4.sin_family = AF_INET;
  v4.sin_port = htons(99);
  v4.sin_addr.s_addr = htonl(0x0a000001);
  const auto address = SocketAddress::from(reinterpret_cast<const sockaddr*>(&v4));
  ASSERT_TRUE(address.has_value());
  EXPECT_EQ(address->host(), "10.0.0.1");
  EXPECT_EQ(address->port(), 99);
}

TEST(SocketAddressTest, WritesHostAndPort) {
  EXPECT_EQ(host_and_port("node-1", 7410), "node-1:7410");
  EXPECT_EQ(host_and_port("fe80::1", 7410), "[fe80::1]:7410");
}

}  // namespace
}  // namespace braid
