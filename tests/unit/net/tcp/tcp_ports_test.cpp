// SPDX-License-Identifier: Apache-2.0
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <sys/socket.h>

#include "base/errors_testing.h"
#include "base/fd.h"
#include "base/socket_address.h"
#include "net/flow_network.h"
#include "net/tcp/flow_listener.h"

namespace braid {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using ::testing::StartsWith;

// A socket that has a port to itself and does not listen, so that a listener may have it, too, and
// nobody else is given it.
Fd reserve(const SocketAddress& address) {
  Fd socket(::socket(address.get()->sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const int on = 1;
  ::setsockopt(socket.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
  return ::bind(socket.get(), address.get(), address.bytes()) == 0 ? std::move(socket) : Fd();
}

uint16_t port_of(const Fd& socket) {
  sockaddr_storage bound{};
  socklen_t bytes = sizeof(bound);
  ::getsockname(socket.get(), reinterpret_cast<sockaddr*>(&bound), &bytes);
  return SocketAddress::from(reinterpret_cast<const sockaddr*>(&bound))->port();
}

// Two neighbouring ports at an address of lo, which are nobody else's.
struct TwoPorts {
  explicit TwoPorts(const std::string& host) : first(*SocketAddress::parse(host, 0)) {
    for (int tries = 0; tries < 1000 && !sockets[1].is_valid(); ++tries) {
      sockets[0] = reserve(first.with_port(0));
      first = first.with_port(port_of(sockets[0]));
      if (first.port() < 65535) sockets[1] = reserve(second());
    }
    EXPECT_TRUE(sockets[1].is_valid());
    options.rails = {"lo"};
    options.transports = {"tcp"};
    options.node_address = host;
    options.tcp_port = first.port();
  }
  SocketAddress second() const { return first.with_port(static_cast<uint16_t>(first.port() + 1)); }
  std::vector<std::string> faults(size_t io_loops) const {
    std::vector<std::string> told;
    for (const Status& fault : FlowNetwork::find_port_faults(options, io_loops))
      told.push_back(fault.message());
    return told;
  }

  SocketAddress first;
  Fd sockets[2];
  TransportOptions options;
};

std::string taken(const SocketAddress& address) {
  return "transport.port: " + std::to_string(address.port()) + " is taken at " + address.host() +
         "; stop what listens there (ss -ltnp 'sport = :" + std::to_string(address.port()) +
         "' names it), or use another port";
}

class TcpPorts : public ::testing::TestWithParam<const char*> {};

TEST_P(TcpPorts, ThoseOfAllIoThreadsAreTried) {
  const TwoPorts ports(GetParam());
  EXPECT_THAT(ports.faults(2), IsEmpty());
  EXPECT_THAT(ports.faults(2), IsEmpty()) << "what was tried is free again";
  ASSERT_EQ(::listen(ports.sockets[1].get(), 1), 0);
  EXPECT_THAT(ports.faults(1), IsEmpty());
  EXPECT_THAT(ports.faults(2), ElementsAre(StartsWith(taken(ports.second()))));
  ASSERT_EQ(::listen(ports.sockets[0].get(), 1), 0);
  EXPECT_THAT(ports.faults(2),
              ElementsAre(StartsWith(taken(ports.first)), StartsWith(taken(ports.second()))));
}

TEST_P(TcpPorts, AStartFailsWithTheSameWords) {
  const TwoPorts ports(GetParam());
  ASSERT_EQ(::listen(ports.sockets[1].get(), 1), 0);
  const auto opened = FlowNetwork::open(ports.options, 2);
  EXPECT_TRUE(testing::is_error(opened, StatusCode::AlreadyExists, {taken(ports.second())}));
  EXPECT_THAT(ports.faults(2), ElementsAre(opened.status().message()));
}

INSTANTIATE_TEST_SUITE_P(OfBothFamilies, TcpPorts, ::testing::Values("127.0.0.1", "::1"));

TEST(TcpPortsTest, ThoseOfAllRailsAreTried) {
  TwoPorts ports("127.0.0.1");
  ports.options.rails = {"nosuch0", "lo", "lo"};
  EXPECT_THAT(ports.faults(2),
              ElementsAre(StartsWith(taken(ports.first)), StartsWith(taken(ports.second()))))
      << "the first of the two has them";
}

TEST(TcpPortsTest, OnlyThoseThatAStartWouldTakeAreTried) {
  TwoPorts ports("127.0.0.1");
  ASSERT_EQ(::listen(ports.sockets[0].get(), 1), 0);
  ASSERT_THAT(ports.faults(1), SizeIs(1));
  const TransportOptions with_port = ports.options;
  ports.options.tcp = TcpTransport::Ucx;
  EXPECT_THAT(ports.faults(1), IsEmpty());
  ports.options = with_port;
  ports.options.is_alone = true;
  EXPECT_THAT(ports.faults(1), IsEmpty());
  ports.options = with_port;
  ports.options.tcp_port = 0;
  EXPECT_THAT(ports.faults(1), IsEmpty());
}

}  // namespace
}  // namespace braid
