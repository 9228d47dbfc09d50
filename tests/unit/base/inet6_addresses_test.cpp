// SPDX-License-Identifier: Apache-2.0
#include "base/inet6_addresses.h"

#include <algorithm>

#include <gmock/gmock.h>

namespace braid {
namespace {

std::vector<std::string> told_of(std::string_view text) {
  std::vector<std::string> told;
  for (const Inet6Address& one : parse_inet6_addresses(text))
    told.push_back(one.device + " " + one.address.host());
  return told;
}

TEST(Inet6AddressesTest, ThoseToBeReachedAtComeFirst) {
  // Interface 1 is lo, the device of the link-local address as the kernel numbers it.
  EXPECT_THAT(told_of("fe800000000000000000000000000005 01 40 20 80     eth0\n"
                      "20010db8000000000000000000000001 02 40 00 01     eth0\n"  // temporary
                      "20010db8000000000000000000000002 02 40 00 20     eth0\n"  // outdated
                      "20010db8000000000000000000000003 02 40 00 40     eth0\n"  // tentative
                      "20010db8000000000000000000000004 02 40 00 80     eth0\n"
                      "20010db8000000000000000000000005 02 40 00 c8     eth0\n"  // a duplicate
                      "00000000000000000000000000000001 01 80 10 80       lo\n"),
              ::testing::ElementsAre("eth0 2001:db8::4", "lo ::1", "eth0 2001:db8::1",
                                     "eth0 2001:db8::2", "eth0 2001:db8::3", "eth0 fe80::5%lo"));
}

TEST(Inet6AddressesTest, TakesNothingFromOtherText) {
  for (const char* text : {"", "\n\n", "2001:db8::1 02 40 00 80 eth0\n", "zz 02 40 00 80 eth0",
                           "20010db8000000000000000000000001 02 40\n"})
    EXPECT_THAT(told_of(text), ::testing::IsEmpty()) << text;
}

TEST(Inet6AddressesTest, DeviceByDevice) {
  const auto all = inet6_addresses();
  const auto of_lo = inet6_addresses_of("lo");
  EXPECT_EQ(static_cast<ptrdiff_t>(of_lo.size()),
            std::ranges::count(all, "lo", &Inet6Address::device));
  EXPECT_TRUE(inet6_addresses_of("no-such-dev").empty());
}

}  // namespace
}  // namespace braid
