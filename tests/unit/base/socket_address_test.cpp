// SPDX-License-Identifier: Apache-2.0
#include "base/socket_address.h"

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
  EXPECT_EQ(text_of("fe80::5%lo", 1), "[fe80::5%lo]:1");
  EXPECT_EQ(text_of("fe80::5%1", 1), "[fe80::5%lo]:1");
}

TEST(SocketAddressTest, TakesNoNames) {
  EXPECT_EQ(text_of("localhost", 1), "none");
  EXPECT_EQ(text_of("", 1), "none");
  EXPECT_EQ(text_of("10.0.0", 1), "none");
  EXPECT_EQ(text_of("10.0.0.256", 1), "none");
  EXPECT_EQ(text_of("[::1]", 1), "none");
}

TEST(SocketAddressTest, AMappedAddressIsTheAddressThatIsMapped) {
  EXPECT_EQ(text_of("::ffff:10.0.0.1", 7410), "10.0.0.1:7410");
  EXPECT_EQ(*SocketAddress::parse("::ffff:10.0.0.1", 1), *SocketAddress::parse("10.0.0.1", 1));
}

TEST(SocketAddressTest, ALinkLocalAddressNeedsADeviceOfThisHost) {
  EXPECT_EQ(text_of("fe80::5", 1), "none");
  EXPECT_EQ(text_of("fe80::5%no-such-dev", 1), "none");
  EXPECT_EQ(text_of("2001:db8::5%lo", 1), "none");
  EXPECT_TRUE(SocketAddress::parse("fe80::5%lo", 1)->is_link_local());
  EXPECT_FALSE(SocketAddress::parse("2001:db8::5", 1)->is_link_local());
}

TEST(AddressFaultTest, SaysWhatWouldBeRight) {
  for (const char* text :
       {"192.0.2.7", "::", "2001:db8::7", "fe80::7%no-such-dev", "::ffff:192.0.2.7"})
    EXPECT_EQ(address_fault(text), "") << text;
  for (const char* text :
       {"", "auto", "node-7", "192.0.2", "2001:db8", "fe80::7%", "1::2::3", "%lo"})
    EXPECT_EQ(address_fault(text),
              "is neither an IPv4 nor an IPv6 address; use one such as 192.0.2.7 or 2001:db8::7")
        << text;
  EXPECT_EQ(
      address_fault("fe80::7"),
      "is a link-local address, which leads nowhere without its device; use fe80::7%eth0, with "
      "the name of its device (ip -6 address shows it)");
  EXPECT_EQ(address_fault("2001:db8::7%eth0"),
            "names a device, which only a link-local address (fe80::) needs; use 2001:db8::7");
  EXPECT_EQ(address_fault("192.0.2.7:7410"),
            "has a port, and an address alone is wanted here; use 192.0.2.7");
  EXPECT_EQ(address_fault("[2001:db8::7]:7410"),
            "has a port, and an address alone is wanted here; use 2001:db8::7");
  EXPECT_EQ(address_fault("[2001:db8::7]"),
            "has brackets, and an address alone is wanted here; use 2001:db8::7");
}

std::string place_of(const std::string& text) {
  const auto place = parse_host_port(text);
  return place ? place->host + " " + std::to_string(place->port) : place.status().message();
}

TEST(ParseHostPortTest, TakesNamesAndBothFamilies) {
  EXPECT_EQ(place_of("node-7"), "node-7 0");
  EXPECT_EQ(place_of("node-7:7410"), "node-7 7410");
  EXPECT_EQ(place_of("192.0.2.7:7410"), "192.0.2.7 7410");
  EXPECT_EQ(place_of("2001:db8::7"), "2001:db8::7 0");
  EXPECT_EQ(place_of("[2001:db8::7]"), "2001:db8::7 0");
  EXPECT_EQ(place_of("[2001:db8::7]:7410"), "2001:db8::7 7410");
  EXPECT_EQ(place_of("[fe80::7%eth0]:7410"), "fe80::7%eth0 7410");
  EXPECT_EQ(place_of("fe80::7%eth0"), "fe80::7%eth0 0");
}

TEST(ParseHostPortTest, ReadsWhatIsWritten) {
  for (const char* host : {"node-7", "192.0.2.7", "2001:db8::7", "fe80::7%eth0"})
    EXPECT_EQ(place_of(host_and_port(host, 7410)), std::string(host) + " 7410");
}

TEST(ParseHostPortTest, SaysWhatWouldBeRight) {
  EXPECT_EQ(
      place_of("fe80::1:7000"),
      "is a link-local address, which leads nowhere without its device; use fe80::1:7000%eth0, "
      "with the name of its device (ip -6 address shows it), and with a port such as "
      "[fe80::7%eth0]:7410");
  EXPECT_EQ(place_of("2001:db8:1:2:3:4:5:6:7410"),
            "has a port behind an IPv6 address; use [2001:db8:1:2:3:4:5:6]:7410");
  EXPECT_EQ(place_of("fe80::1%eth0:7410"),
            "has a port behind an IPv6 address; use [fe80::1%eth0]:7410");
  for (const char* text :
       {"", ":1", "a:", "a:0", "a:65536", "[::1", "[::1]7410", "[::1]:", "[node]:1", "a b"})
    EXPECT_EQ(place_of(text).find("is no node; right is such as node-7, "), 0u) << text;
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
