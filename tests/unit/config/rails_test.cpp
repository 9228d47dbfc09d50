// SPDX-License-Identifier: Apache-2.0
#include "config/rails.h"

#include <gtest/gtest.h>

namespace braid {
namespace {

using Strings = std::vector<std::string>;

NetworkInterface make(const std::string& name, const std::string& address, bool is_up = true) {
  NetworkInterface made{.name = name, .is_up = is_up, .is_loopback = name == "lo", .addresses = {}};
  if (!address.empty()) made.addresses.push_back(address);
  return made;
}

Network host() {
  return {{make("lo", "127.0.0.1"), make("ib0", "", false), make("eth0", "192.0.2.2"),
           make("eth1", "198.51.100.2"), make("eth2", "")},
          "eth1"};
}

DaemonConfig with_rails(const Strings& rails) {
  DaemonConfig config;
  config.transport.rails = rails;
  return config;
}

TEST(ResolveRails, AutoTakesTheDefaultRoute) {
  EXPECT_EQ(resolve_rails(DaemonConfig{}, host()).value(), Strings({"eth1"}));
}

TEST(ResolveRails, AutoTakesTheFirstUsableWithoutARoute) {
  Network network = host();
  network.default_route.clear();
  EXPECT_EQ(resolve_rails(DaemonConfig{}, network).value(), Strings({"eth0"}));
  network.default_route = "eth2";  // it has no address
  EXPECT_EQ(resolve_rails(DaemonConfig{}, network).value(), Strings({"eth0"}));
}

NetworkInterface bridge(const std::string& name, const std::string& address, bool has_carrier) {
  NetworkInterface interface = make(name, address);
  interface.is_internal = true;
  interface.has_carrier = has_carrier;
  return interface;
}

TEST(ResolveRails, AutoTakesABridgeOnlyIfThereIsNothingElse) {
  Network network{
      {make("lo", "127.0.0.1"), bridge("docker0", "172.17.0.1", true), make("eth0", "192.0.2.2")},
      ""};
  EXPECT_EQ(resolve_rails(DaemonConfig{}, network).value(), Strings({"eth0"}));
  network.interfaces[2].is_up = false;
  EXPECT_EQ(resolve_rails(DaemonConfig{}, network).value(), Strings({"docker0"}));
  network.interfaces[1].has_carrier = false;
  EXPECT_EQ(resolve_rails(DaemonConfig{}, network).value(), Strings({"lo"}));
}

TEST(ResolveRails, AutoTakesABridgeWithTheDefaultRoute) {
  const Network network{{make("eth0", "192.0.2.2"), bridge("br0", "198.51.100.2", true)}, "br0"};
  EXPECT_EQ(resolve_rails(DaemonConfig{}, network).value(), Strings({"br0"}));
}

TEST(ResolveRails, AutoPrefersWhatHasACarrier) {
  Network network = host();
  network.default_route.clear();
  network.interfaces[2].has_carrier = false;  // eth0
  EXPECT_EQ(resolve_rails(DaemonConfig{}, network).value(), Strings({"eth1"}));
}

TEST(ResolveRails, AutoWithoutARouteTakesTheOneWithTheNodesAddress) {
  DaemonConfig config;
  config.node.address = "198.51.100.2";
  Network network = host();
  network.default_route.clear();
  EXPECT_EQ(resolve_rails(config, network).value(), Strings({"eth1"}));
}

TEST(DescribeChoice, NamesTheRailTheReasonAndTheOthers) {
  Network network{
      {make("lo", "127.0.0.1"), bridge("docker0", "172.17.0.1", true), make("eth0", "192.0.2.2")},
      "eth0"};
  const auto expect_parts = [&](const DaemonConfig& config, const Strings& rails,
                                const Strings& parts) {
    const std::string text = describe_choice(config, rails, "192.0.2.2", network);
    for (const std::string& part : parts) EXPECT_NE(text.find(part), std::string::npos) << text;
  };
  expect_parts({}, {"eth0"},
               {"rail eth0 (the default route", "this one at 192.0.2.2;",
                "are: lo (127.0.0.1), docker0 (172.17.0.1, bridge)"});
  expect_parts(with_rails({"eth0", "docker0"}), {"eth0", "docker0"},
               {"rail eth0, docker0 (transport.rails names them)", "are: lo (127.0.0.1)"});
  network.default_route.clear();
  expect_parts({}, {"eth0"}, {"rail eth0 (there is no default route", "set transport.rails"});
}

TEST(ResolveRails, AutoTakesLoopbackLast) {
  const Network network{{make("lo", "127.0.0.1"), make("eth0", "192.0.2.2", false)}, "eth0"};
  EXPECT_EQ(resolve_rails(DaemonConfig{}, network).value(), Strings({"lo"}));
}

TEST(ResolveRails, AutoWithoutAnyInterfaceIsExplained) {
  EXPECT_EQ(resolve_rails(DaemonConfig{}, {}).status().message(),
            "transport.rails: auto finds no interface that is up with an IP address; the "
            "interfaces are: none");
}

TEST(ResolveRails, UnknownRailsAreRefusedWithTheList) {
  const Status status = resolve_rails(with_rails({"eth0", "eth9"}), host()).status();
  EXPECT_EQ(status.code(), StatusCode::NotFound);
  EXPECT_EQ(status.message(),
            "transport.rails: there is no interface 'eth9'; the interfaces are: lo (127.0.0.1), "
            "ib0 (down), eth0 (192.0.2.2), eth1 (198.51.100.2), eth2 (no IP address)");
}

TEST(ResolveRails, RailsThatAreDownOrWithoutAddressAreRefused) {
  EXPECT_NE(resolve_rails(with_rails({"ib0"}), host()).status().message().find("'ib0' is down"),
            std::string::npos);
  EXPECT_NE(resolve_rails(with_rails({"eth2"}), host()).status().message().find("no IP address"),
            std::string::npos);
}

TEST(ResolveRails, RailsWithoutALinkMayComeLater) {
  Network network = host();
  EXPECT_EQ(resolve_rails(with_rails({"eth0", "ib0"}), network).value(), Strings({"eth0", "ib0"}));
  network.interfaces[3].has_carrier = false;  // eth1
  EXPECT_EQ(resolve_rails(with_rails({"eth1", "eth0"}), network).value(),
            Strings({"eth1", "eth0"}));
  const Status status = resolve_rails(with_rails({"eth1", "ib0"}), network).status();
  EXPECT_EQ(status.code(), StatusCode::Unavailable);
  EXPECT_EQ(status.message(),
            "transport.rails: interface 'eth1' has no carrier; look at its cable, or name another "
            "of: lo (127.0.0.1), ib0 (down), eth0 (192.0.2.2), eth1 (no carrier), eth2 (no IP "
            "address)");
  EXPECT_FALSE(resolve_rails(with_rails({"eth0", "eth9"}), network).is_ok());
  EXPECT_FALSE(resolve_rails(with_rails({"eth0", "eth2"}), network).is_ok());
}

TEST(ResolveRails, DevicesOfOtherTransportsAreLeftToUcx) {
  DaemonConfig config = with_rails({"mlx5_0:1"});
  EXPECT_FALSE(resolve_rails(config, host()).is_ok());
  config.transport.transports = {"rc", "tcp"};
  EXPECT_EQ(resolve_rails(config, host()).value(), Strings({"mlx5_0:1"}));
}

TEST(ResolveAddress, AutoIsTheFirstRails) {
  EXPECT_EQ(resolve_address(DaemonConfig{}, "eth0", host()).value(), "192.0.2.2");
}

// A host whose eth0 has IPv6 alone, and whose eth1 has nothing but what each device gives itself.
Network host_of_v6() {
  Network network{{make("lo", "127.0.0.1"), make("eth0", "2001:db8::2"),
                   make("eth1", "fe80::2%eth1"), make("eth2", "192.0.2.2")},
                  ""};
  network.interfaces[1].addresses.push_back("fe80::1%eth0");
  network.interfaces[3].addresses.push_back("2001:db8:2::2");
  return network;
}

TEST(ResolveRails, AnAddressOfEitherFamilyMakesARail) {
  Network network = host_of_v6();
  EXPECT_EQ(resolve_rails(DaemonConfig{}, network).value(), Strings({"eth0"}));
  network.default_route = "eth2";
  EXPECT_EQ(resolve_rails(DaemonConfig{}, network).value(), Strings({"eth2"}));
  EXPECT_EQ(resolve_rails(with_rails({"eth0", "eth1"}), network).value(),
            Strings({"eth0", "eth1"}));
}

TEST(ResolveRails, AutoTakesNoInterfaceThatHasOnlyALinkLocalAddress) {
  Network network = host_of_v6();
  network.interfaces[1].is_up = false;
  network.interfaces[3].is_up = false;
  EXPECT_EQ(resolve_rails(DaemonConfig{}, network).value(), Strings({"lo"}));
  network.default_route = "eth1";
  EXPECT_EQ(resolve_rails(DaemonConfig{}, network).value(), Strings({"lo"}));
}

TEST(ResolveRails, AutoFindsTheNodesAddressHoweverItIsWritten) {
  DaemonConfig config;
  config.node.address = "2001:DB8:2:0::2";
  EXPECT_EQ(resolve_rails(config, host_of_v6()).value(), Strings({"eth2"}));
}

TEST(ResolveAddress, AutoIsIpv4IfTheRailHasIt) {
  EXPECT_EQ(resolve_address(DaemonConfig{}, "eth2", host_of_v6()).value(), "192.0.2.2");
  EXPECT_EQ(resolve_address(DaemonConfig{}, "eth0", host_of_v6()).value(), "2001:db8::2");
  EXPECT_EQ(resolve_address(DaemonConfig{}, "eth1", host_of_v6()).value(), "fe80::2%eth1");
}

TEST(ResolveAddress, IsToldInOneForm) {
  DaemonConfig config;
  config.node.address = "2001:DB8:0::0007";
  EXPECT_EQ(resolve_address(config, "eth0", host_of_v6()).value(), "2001:db8::7");
  config.node.address = "fe80::1%no-such-dev";
  EXPECT_EQ(
      resolve_address(config, "eth0", host_of_v6()).status().message(),
      "node.address: this machine has no device 'no-such-dev', which fe80::1%no-such-dev names "
      "(ip link shows them)");
  config.node.address = "::";
  EXPECT_EQ(resolve_address(config, "eth0", host_of_v6())
                .status()
                .message()
                .find("node.address: :: is no address that other nodes reach; use one of"),
            0u);
}

TEST(DescribeChoice, NamesAllAddresses) {
  const std::string text = describe_choice({}, {"lo"}, "::1", host_of_v6());
  EXPECT_NE(
      text.find("are: eth0 (2001:db8::2), eth1 (fe80::2%eth1), eth2 (192.0.2.2, 2001:db8:2::2)"),
      std::string::npos)
      << text;
}

TEST(ResolveAddress, ARailWithoutAddressIsExplained) {
  const Status status = resolve_address(DaemonConfig{}, "mlx5_0:1", host()).status();
  EXPECT_NE(status.message().find("node.address: rail 'mlx5_0:1' has no IP address"),
            std::string::npos);
}

TEST(ResolveListen, OpensTheNetworkOnlyWithAKey) {
  DaemonConfig config;
  EXPECT_EQ(resolve_listen(config, "192.0.2.2"), "127.0.0.1");
  config.control.cluster_key_file = "/k";
  EXPECT_EQ(resolve_listen(config, "192.0.2.2"), "192.0.2.2");
  config.control.listen = "::";
  EXPECT_EQ(resolve_listen(config, "192.0.2.2"), "::");
}

TEST(ResolveNodeName, AutoIsTheShortHostName) {
  const auto name = resolve_node_name(DaemonConfig{}).value();
  EXPECT_FALSE(name.empty());
  EXPECT_EQ(name.find('.'), std::string::npos);
}

TEST(WhyOwnHostOnly, NamesWhatKeepsOtherNodesAway) {
  DaemonConfig config;
  EXPECT_EQ(why_own_host_only(config, "192.0.2.2"),
            "it has no cluster key: if the missing ranks are on other nodes, set "
            "control.cluster_key_file on all nodes");
  config.control.cluster_key_file = "/etc/braid/cluster.key";
  EXPECT_EQ(why_own_host_only(config, "192.0.2.2"), "");
  EXPECT_EQ(why_own_host_only(config, "127.0.0.1"),
            "node.address is 127.0.0.1, a loopback address: if the missing ranks are on other "
            "nodes, set it to auto, or to an address that these reach");
  config.control.listen = "127.0.0.1";
  EXPECT_EQ(why_own_host_only(config, "192.0.2.2").find("control.listen is 127.0.0.1"), 0u);
}

}  // namespace
}  // namespace braid
