// SPDX-License-Identifier: Apache-2.0
#include "web/ipv6_front.h"

#include <charconv>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>
#include <thread>

#include <gtest/gtest.h>
#include <unistd.h>

#include "web/web_server.h"
#include "web_client.h"

namespace braid {
namespace {

using testing::body_of;
using testing::connect_to;
using testing::read_all;
using testing::send_text;
using testing::status_of;
using testing::talk;

constexpr const char* kLoopbackV6 = "::1";
constexpr const char* kRequest = "GET /a HTTP/1.1\r\nHost: localhost";
constexpr size_t kLongBytes = 20 << 20;

std::unique_ptr<WebServer> serve_at(const std::string& address, WebRoute route) {
  PageAccessOptions access;
  access.mode = PageMode::Loopback;
  access.listen_address = address;
  auto server = WebServer::create({address, 0, std::move(access), {std::move(route)}});
  EXPECT_TRUE(server.is_ok()) << server.status().message();
  return std::move(server).value();
}

WebRoute ends_route(WebAccess access) {
  return {"/a", access, [](const WebRequest& request) {
            return text_reply(200, fmt::format("{} to {} as {}", request.peer_address,
                                               request.own_address, request.user));
          }};
}

// Ports of 127.0.0.1 at which this process listens.
std::vector<uint16_t> own_ports() {
  std::set<std::string> own;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    std::error_code gone;
    own.insert(std::filesystem::read_symlink(entry.path(), gone));
  }
  std::vector<uint16_t> ports;
  std::ifstream table("/proc/self/net/tcp");
  for (std::string line; std::getline(table, line);) {
    std::istringstream fields(line);
    std::string number, local, remote, state, queues, timer, retransmits, uid, timeout, inode;
    fields >> number >> local >> remote >> state >> queues >> timer >> retransmits >> uid >>
        timeout >> inode;
    if (state != "0A" || !local.starts_with("0100007F:") || !own.contains("socket:[" + inode + "]"))
      continue;
    uint16_t port = 0;
    std::from_chars(local.data() + 9, local.data() + local.size(), port, 16);
    ports.push_back(port);
  }
  return ports;
}

class Ipv6FrontTest : public ::testing::Test {
 protected:
  void SetUp() override {
    const auto address = *SocketAddress::parse(kLoopbackV6, 0);
    const Fd probe(::socket(AF_INET6, SOCK_STREAM, 0));
    if (::bind(probe.get(), address.get(), address.bytes()) != 0)
      GTEST_SKIP() << "this machine has no IPv6";
  }
};

TEST_F(Ipv6FrontTest, KnowsWhoAsks) {
  const std::string user = std::to_string(::getuid());
  for (const WebAccess access : {WebAccess::Open, WebAccess::Data}) {
    const std::string seen = access == WebAccess::Open ? "0" : user;
    const auto server = serve_at(kLoopbackV6, ends_route(access));
    EXPECT_EQ(body_of(talk(server->port(), kRequest, kLoopbackV6)), "::1 to ::1 as " + seen + "\n");
    EXPECT_FALSE(connect_to(server->port()).is_valid()) << "IPv4 is not asked for";
    const auto everywhere = serve_at("::", ends_route(access));
    EXPECT_EQ(body_of(talk(everywhere->port(), kRequest, kLoopbackV6)),
              "::1 to ::1 as " + seen + "\n");
    EXPECT_EQ(body_of(talk(everywhere->port(), kRequest)),
              "127.0.0.1 to 127.0.0.1 as " + seen + "\n");
  }
}

TEST_F(Ipv6FrontTest, NobodyGetsPastIt) {
  const auto server = serve_at(kLoopbackV6, ends_route(WebAccess::Open));
  const auto ports = own_ports();
  ASSERT_FALSE(ports.empty());
  for (const uint16_t port : ports) EXPECT_EQ(status_of(talk(port, kRequest)), 403);
}

TEST_F(Ipv6FrontTest, ALongAnswerComesWholeAlsoToASlowReader) {
  const auto text = std::make_shared<const std::string>(kLongBytes, 'x');
  const auto server = serve_at(kLoopbackV6, {"/a", WebAccess::Open, [text](const WebRequest&) {
                                               WebReply reply;
                                               reply.body = text;
                                               return reply;
                                             }});
  const Fd slow = connect_to(server->port(), kLoopbackV6);
  ASSERT_TRUE(send_text(slow, std::string(kRequest) + "\r\n\r\n"));
  std::this_thread::sleep_for(std::chrono::milliseconds(200));  // its buffers fill
  EXPECT_EQ(body_of(read_all(slow)).size(), kLongBytes);
}

TEST_F(Ipv6FrontTest, RequestsMayComeInPiecesAndBeTooLong) {
  const auto server = serve_at(kLoopbackV6, ends_route(WebAccess::Open));
  const Fd client = connect_to(server->port(), kLoopbackV6);
  for (const char piece : std::string(kRequest) + "\r\n\r\n")
    ASSERT_TRUE(send_text(client, std::string(1, piece)));
  EXPECT_EQ(status_of(read_all(client)), 200);
  const std::string head = "GET /a HTTP/1.1\r\nX: " + std::string(100'000, 'x');
  EXPECT_GE(status_of(talk(server->port(), head, kLoopbackV6)), 400);
}

TEST_F(Ipv6FrontTest, MoreConnectionsThanItTakesWaitForTheirTurn) {
  const auto server = serve_at(kLoopbackV6, ends_route(WebAccess::Open));
  std::vector<Fd> clients;
  for (size_t i = 0; i < Ipv6Front::kConnectionsMax + 20; ++i)
    clients.push_back(connect_to(server->port(), kLoopbackV6));
  for (const Fd& client : clients)
    ASSERT_TRUE(send_text(client, std::string(kRequest) + "\r\n\r\n"));
  for (const Fd& client : clients) EXPECT_EQ(status_of(read_all(client)), 200);
}

TEST_F(Ipv6FrontTest, EndsWithConnectionsThatSayNothing) {
  const auto server = serve_at("::", ends_route(WebAccess::Open));
  const Fd silent = connect_to(server->port(), kLoopbackV6);
  const Fd half = connect_to(server->port(), kLoopbackV6);
  ASSERT_TRUE(send_text(half, "GET /a HT"));
}

TEST_F(Ipv6FrontTest, AnAddressThatCannotBeServedIsNamed) {
  const auto taken = serve_at(kLoopbackV6, ends_route(WebAccess::Open));
  for (const auto& [address, port] : {std::pair{std::string("::1"), taken->port()},
                                      std::pair{std::string("2001:db8::77"), uint16_t{0}}}) {
    PageAccessOptions access;
    const auto server = WebServer::create({address, port, access, {}});
    ASSERT_FALSE(server.is_ok());
    EXPECT_EQ(server.status().message().find("metrics.port: cannot serve /metrics on " +
                                             host_and_port(address, port) + " (cannot listen"),
              0u)
        << server.status().message();
  }
}

}  // namespace
}  // namespace braid
