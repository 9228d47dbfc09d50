// SPDX-License-Identifier: Apache-2.0
#include "config/host_check.h"

#include <gmock/gmock.h>

#include "temporary_file.h"

namespace braid {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;

constexpr const char* kElsewhere = "203.0.113.9";

Network one_interface() {
  return {{NetworkInterface{.name = "eth0", .is_up = true, .addresses = {"192.0.2.2"}}}, "eth0"};
}

// That nothing is said against anywhere.
DaemonConfig harmless() {
  DaemonConfig config;
  config.client.group.clear();
  return config;
}

TEST(HostCheck, HasNothingAgainstADaemonThatNeedsNothing) {
  EXPECT_THAT(find_host_troubles(harmless(), one_interface()), IsEmpty());
}

TEST(HostCheck, NamesFilesThatAreNotThere) {
  DaemonConfig config = harmless();
  config.control.cluster_key_file = "/nowhere/cluster.key";
  config.page.access = "/nowhere/page.token";
  EXPECT_THAT(find_host_troubles(config, one_interface()),
              ElementsAre(AllOf(StartsWith("control.cluster_key_file: /nowhere/cluster.key: "),
                                HasSubstr("make one with")),
                          StartsWith("page.access: /nowhere/page.token: ")));
  config.control.cluster_key_file.clear();
  config.page.access = kLoopbackAccess;
  EXPECT_THAT(find_host_troubles(config, one_interface()), IsEmpty()) << "no token is read";
}

TEST(HostCheck, NamesAGroupThatIsNotThere) {
  DaemonConfig config = harmless();
  config.client.group = "no-such-group";
  EXPECT_THAT(
      find_host_troubles(config, one_interface()),
      ElementsAre(AllOf(StartsWith("client.group: the group 'no-such-group' does not exist"),
                        HasSubstr("groupadd"))));
}

TEST(HostCheck, NamesInterfacesThatAreNotThere) {
  DaemonConfig config = harmless();
  config.transport.rails = {"eth8", "eth0", "eth9"};
  EXPECT_THAT(find_host_troubles(config, one_interface()),
              ElementsAre(StartsWith("transport.rails: there is no interface 'eth8'"),
                          "transport.rails: there is no interface 'eth9'; the interfaces are: eth0 "
                          "(192.0.2.2)"));
}

TEST(HostCheck, NamesAddressesThatAreNotThisMachines) {
  const TemporaryFile key("0123456789abcdef0123456789abcdef\n");
  DaemonConfig config = harmless();
  config.control.cluster_key_file = key.path();
  config.node.address = kElsewhere;
  config.metrics.address = kElsewhere;
  EXPECT_THAT(
      find_host_troubles(config, one_interface()),
      ElementsAre(AllOf(StartsWith("node.address: 203.0.113.9 is no address of this machine"),
                        HasSubstr("or auto"), HasSubstr("control.listen to 0.0.0.0")),
                  StartsWith("metrics.address: 203.0.113.9 is no address of this machine")));
  config.metrics.port = 0;
  config.control.listen = "0.0.0.0";
  EXPECT_THAT(find_host_troubles(config, one_interface()), IsEmpty()) << "it may be translated";
  config.control.listen = "::";
  EXPECT_THAT(find_host_troubles(config, one_interface()), IsEmpty());
  config.control.listen = kElsewhere;
  EXPECT_THAT(find_host_troubles(config, one_interface()),
              ElementsAre(StartsWith("control.listen: 203.0.113.9 is no address of this machine")));
  config.control.listen = "2001:db8::9";
  EXPECT_THAT(find_host_troubles(config, one_interface()),
              ElementsAre(StartsWith("control.listen: 2001:db8::9 is no address of this machine")));
}

TEST(HostCheck, ADaemonThatWorksAloneListensNowhere) {
  DaemonConfig config = harmless();
  config.node.address = kElsewhere;
  EXPECT_THAT(find_host_troubles(config, one_interface()), IsEmpty());
}

}  // namespace
}  // namespace braid
