// SPDX-License-Identifier: Apache-2.0
#include "config/network.h"

#include <algorithm>

#include <gtest/gtest.h>

namespace braid {
namespace {

constexpr const char* kHeading =
    "Iface\tDestination\tGateway \tFlags\tRefCnt\tUse\tMetric\tMask\t\tMTU\tWindow\tIRTT\n";

TEST(FindDefaultRoute, SkipsOtherRoutes) {
  const std::string routes = std::string(kHeading) +
                             "eth1\t000200C0\t00000000\t0001\t0\t0\t0\t00FFFFFF\t0\t0\t0\n"
                             "eth0\t00000000\t010200C0\t0003\t0\t0\t0\t00000000\t0\t0\t0\n";
  EXPECT_EQ(find_default_route(routes), "eth0");
}

TEST(FindDefaultRoute, TakesTheLowestMetric) {
  const std::string routes = std::string(kHeading) +
                             "wlan0\t00000000\t010200C0\t0003\t0\t0\t600\t00000000\t0\t0\t0\n"
                             "eth0\t00000000\t010200C0\t0003\t0\t0\t100\t00000000\t0\t0\t0\n"
                             "usb0\t00000000\t010200C0\t0003\t0\t0\t700\t00000000\t0\t0\t0\n";
  EXPECT_EQ(find_default_route(routes), "eth0");
}

TEST(FindDefaultRoute, SkipsRoutesThatAreDownOrHalfTheInternet) {
  const std::string routes = std::string(kHeading) +
                             "eth0\t00000000\t010200C0\t0002\t0\t0\t0\t00000000\t0\t0\t0\n"
                             "tun0\t00000000\t010200C0\t0003\t0\t0\t0\t00000080\t0\t0\t0\n";
  EXPECT_EQ(find_default_route(routes), std::nullopt);
}

TEST(FindDefaultRoute, TakesNothingFromOtherText) {
  EXPECT_EQ(find_default_route(""), std::nullopt);
  EXPECT_EQ(find_default_route(kHeading), std::nullopt);
  EXPECT_EQ(find_default_route("eth0 0\n\n zz \xff"), std::nullopt);
}

TEST(FindDefaultRouteV6, TakesTheLowestMetricThatLeadsOut) {
  const std::string zeros(32, '0');
  const auto route = [&](const std::string& prefix, const std::string& metric,
                         const std::string& flags, const std::string& device) {
    return zeros + " " + prefix + " " + zeros + " 00 " + zeros + " " + metric +
           " 00000001 00000000 " + flags + "       " + device + "\n";
  };
  const std::string others = route("00", "ffffffff", "00200200", "lo") +    // unreachable
                             route("40", "00000001", "00000001", "eth0") +  // of a network
                             route("00", "00000000", "00000000", "eth3");   // down
  EXPECT_EQ(find_default_route_v6(others), std::nullopt);
  EXPECT_EQ(find_default_route_v6(others + route("00", "00000400", "00000003", "eth1") +
                                  route("00", "00000064", "00000003", "eth2")),
            "eth2");
  EXPECT_EQ(find_default_route_v6("eth0 0\n\n zz \xff"), std::nullopt);
}

TEST(ListNetwork, FindsLoopback) {
  const auto network = list_network().value();
  const auto& all = network.interfaces;
  const auto lo =
      std::find_if(all.begin(), all.end(), [](const auto& one) { return one.is_loopback; });
  ASSERT_NE(lo, all.end());
  if (lo->is_up) {
    EXPECT_EQ(lo->address(), "127.0.0.1");
  }
  EXPECT_EQ(
      std::count_if(all.begin(), all.end(), [&](const auto& one) { return one.name == lo->name; }),
      1);
}

}  // namespace
}  // namespace braid
