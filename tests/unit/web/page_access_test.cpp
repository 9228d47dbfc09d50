// SPDX-License-Identifier: Apache-2.0
#include "web/page_access.h"

#include <thread>

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/tcp.h>

#include "base/fd.h"
#include "web/local_user.h"
#include "web_client.h"

namespace braid {
namespace {

PageAccessOptions with_token(std::string_view token) {
  PageAccessOptions options;
  options.mode = PageMode::Token;
  options.token.assign(token.begin(), token.end());
  return options;
}

PageAccessOptions loopback(std::string listen_address) {
  PageAccessOptions options;
  options.node_name = "Node-7";
  options.listen_address = std::move(listen_address);
  return options;
}

WebRequest authorized(std::string authorization) {
  WebRequest request;
  request.authorization = std::move(authorization);
  return request;
}

// A connection to a socket of this process, and what the side that accepted it is told.
struct Connected {
  Connected() {
    ::listen(listener.get(), 4);
    sockaddr_in address{};
    socklen_t size = sizeof(address);
    ::getsockname(listener.get(), reinterpret_cast<sockaddr*>(&address), &size);
    request.port = ntohs(address.sin_port);
    client = testing::connect_to(request.port);
    ::getsockname(client.get(), reinterpret_cast<sockaddr*>(&address), &size);
    request.peer_address = "127.0.0.1";
    request.peer_port = ntohs(address.sin_port);
    request.host = "localhost:9431";
    accepted = Fd(::accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC));
  }
  TcpEnd peer() const { return {request.peer_address, request.peer_port}; }
  TcpEnd own() const { return {"127.0.0.1", request.port}; }
  Fd listener{::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)};
  Fd client;
  Fd accepted;
  WebRequest request;
};

int refusal_of(PageAccess& access, WebAccess what, WebRequest request) {
  const auto refusal = access.refuse(what, request);
  return refusal ? refusal->status : 0;
}

// Connects from a chosen end, as anybody can who knows the port of another connection.
Fd connect_from(const TcpEnd& from, const TcpEnd& to) {
  Fd fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const int yes = 1;
  ::setsockopt(fd.get(), SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes));
  const auto address_of = [](const TcpEnd& end) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(end.port);
    ::inet_pton(AF_INET, end.address.c_str(), &address.sin_addr);
    return address;
  };
  const sockaddr_in own = address_of(from), other = address_of(to);
  if (::bind(fd.get(), reinterpret_cast<const sockaddr*>(&own), sizeof(own)) != 0) return {};
  if (::connect(fd.get(), reinterpret_cast<const sockaddr*>(&other), sizeof(other)) != 0) return {};
  return fd;
}

TcpEnd own_end_of(const Fd& fd) {
  sockaddr_in address{};
  socklen_t size = sizeof(address);
  ::getsockname(fd.get(), reinterpret_cast<sockaddr*>(&address), &size);
  return {"127.0.0.1", ntohs(address.sin_port)};
}

// What a kernel (6.18) said of 127.0.0.1:45678 → 127.0.0.1:9431, without what comes behind
// inet_diag_msg, in a given state.
std::vector<uint8_t> recorded(uint8_t state, uint32_t user, uint32_t inode) {
  std::vector<uint8_t> answer = {
      88, 0, 0, 0, 20, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0,  // 88 bytes, by family
      2, 0, 0, 0, 0xb2, 0x6e, 0x24, 0xd7,                // IPv4, both ports
      127, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 127, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
      0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0,  // interface,
                                                 // cookie
      0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0};       // timer and queues
  answer[17] = state;
  for (const uint32_t number : {user, inode}) {
    for (int shift = 0; shift < 32; shift += 8) answer.push_back(uint8_t(number >> shift));
  }
  return answer;
}

const TcpEnd kBrowser{"127.0.0.1", 45678}, kPage{"127.0.0.1", 9431};

std::optional<uid_t> user_in(const std::vector<uint8_t>& answer) {
  return user_among(sockets_in(answer), kBrowser, kPage);
}

TEST(PageAccessRules, HoldForRequestsToCome) {
  PageAccess access(with_token("0123456789abcdef"));
  EXPECT_EQ(refusal_of(access, WebAccess::Data, authorized("Bearer 0123456789abcdef")), 0);
  access.set_options(with_token("another-0123456789"));
  EXPECT_EQ(refusal_of(access, WebAccess::Data, authorized("Bearer 0123456789abcdef")), 401);
  EXPECT_EQ(refusal_of(access, WebAccess::Data, authorized("Bearer another-0123456789")), 0);
  PageAccessOptions off;
  off.mode = PageMode::Off;
  access.set_options(off);
  for (const WebAccess what : {WebAccess::Page, WebAccess::Data})
    EXPECT_EQ(refusal_of(access, what, authorized("Bearer another-0123456789")), 404);
  EXPECT_EQ(refusal_of(access, WebAccess::Open, {}), 0);
}

TEST(UserAmong, IsThatOfAConnectedSocketWhichAProcessHas) {
  for (const uint8_t connected : {TCP_ESTABLISHED, TCP_FIN_WAIT1, TCP_FIN_WAIT2, TCP_CLOSE_WAIT})
    EXPECT_EQ(user_in(recorded(connected, 1000, 168844)), 1000u) << int{connected};
}

TEST(UserAmong, IsNobodyInAnyOtherState) {
  for (const uint8_t other :
       {0, int{TCP_SYN_SENT}, int{TCP_SYN_RECV}, int{TCP_TIME_WAIT}, int{TCP_CLOSE},
        int{TCP_LAST_ACK}, int{TCP_LISTEN}, int{TCP_CLOSING}, 12, 13, 33, 255}) {
    EXPECT_EQ(user_in(recorded(other, 0, 168844)), std::nullopt) << int{other};
  }
}

TEST(UserAmong, IsNobodyWhereNoProcessHasIt) {
  EXPECT_EQ(user_in(recorded(TCP_TIME_WAIT, 0, 0)), std::nullopt);
  EXPECT_EQ(user_in(recorded(TCP_FIN_WAIT1, 1000, 0)), std::nullopt);  // closed by its process
  EXPECT_EQ(user_in(recorded(TCP_ESTABLISHED, 0, 0)), std::nullopt);   // not accepted yet
}

TEST(UserAmong, IsThatOfTheseTwoEndsAlone) {
  const auto sockets = sockets_in(recorded(TCP_ESTABLISHED, 1000, 168844));
  EXPECT_EQ(user_among(sockets, kPage, kBrowser), std::nullopt);
  for (const TcpEnd& other : {TcpEnd{"127.0.0.2", kPage.port}, TcpEnd{kPage.address, 9432}}) {
    EXPECT_EQ(user_among(sockets, kBrowser, other), std::nullopt);
    EXPECT_EQ(user_among(sockets, other, kPage), std::nullopt);
  }
}

TEST(SocketsIn, IsEmptyForWhatIsNoAnswer) {
  const std::vector<uint8_t> whole = recorded(TCP_ESTABLISHED, 1000, 168844);
  for (size_t bytes = 0; bytes < whole.size(); ++bytes)
    EXPECT_TRUE(sockets_in(std::span(whole).first(bytes)).empty()) << bytes;
  std::vector<uint8_t> endless = whole;
  endless[0] = 0;
  EXPECT_TRUE(sockets_in(endless).empty());
}

TEST(UserOfConnection, IsWhoHasTheOtherEnd) {
  const Connected one;
  EXPECT_EQ(user_of_connection(one.peer(), one.own()), ::getuid());
}

TEST(UserOfConnection, NobodyHasWhatIsNotThere) {
  const Connected one;
  EXPECT_EQ(user_of_connection({"192.0.2.1", 1}, one.own()), std::nullopt);
  EXPECT_EQ(user_of_connection({"nonsense", 1}, one.own()), std::nullopt);
  // A socket that listens is no end of a connection.
  EXPECT_EQ(user_of_connection(one.own(), {"192.0.2.1", 1}), std::nullopt);
}

TEST(UserOfConnection, NobodyHasWhatItsProcessHasClosed) {
  Connected one;
  one.client = Fd();
  EXPECT_EQ(user_of_connection(one.peer(), one.own()),
            std::nullopt);  // FIN-WAIT, without a process
  one.accepted = Fd();
  EXPECT_EQ(user_of_connection(one.peer(), one.own()), std::nullopt);  // TIME-WAIT
}

TEST(OwnAddressOf, IsTheAddressThatTheConnectionGoesTo) {
  Connected one;
  EXPECT_EQ(own_address_of(one.peer(), one.request.port), "127.0.0.1");
  EXPECT_EQ(own_address_of({"127.0.0.9", one.request.peer_port}, one.request.port), std::nullopt);
  EXPECT_EQ(own_address_of(one.peer(), 1), std::nullopt);
  one.accepted = Fd();
  EXPECT_EQ(own_address_of(one.peer(), one.request.port), std::nullopt);
}

TEST(OwnAddressOf, IsUnknownWhereTheSameEndIsConnectedTwice) {
  const Connected one;
  // One's own port may be used again for another address of the same listener.
  const Fd first = connect_from({"127.0.0.1", 0}, {"127.0.0.1", one.request.port});
  const TcpEnd end = own_end_of(first);
  const Fd second = connect_from(end, {"127.0.0.2", one.request.port});
  ASSERT_TRUE(first.is_valid() && second.is_valid());
  const Fd accepted_first(::accept4(one.listener.get(), nullptr, nullptr, SOCK_CLOEXEC));
  EXPECT_EQ(own_address_of(end, one.request.port), "127.0.0.1");
  const Fd accepted_second(::accept4(one.listener.get(), nullptr, nullptr, SOCK_CLOEXEC));
  EXPECT_EQ(own_address_of(end, one.request.port), std::nullopt);
}

TEST(PageAccess, LoopbackIsForUsersOfThisHost) {
  PageAccess access(loopback("127.0.0.1"));
  Connected one;
  for (const WebAccess what : {WebAccess::Page, WebAccess::Data}) {
    EXPECT_EQ(access.refuse(what, one.request), std::nullopt);
    EXPECT_EQ(one.request.user, ::getuid());
  }
  WebRequest stranger = one.request;
  stranger.peer_address = "192.0.2.9";
  EXPECT_EQ(refusal_of(access, WebAccess::Page, stranger), 403);
  EXPECT_EQ(refusal_of(access, WebAccess::Data, stranger), 403);
  EXPECT_EQ(refusal_of(access, WebAccess::Open, stranger), 0);
  WebRequest unknown = one.request;
  unknown.peer_port = 1;
  EXPECT_EQ(refusal_of(access, WebAccess::Data, unknown), 403);
}

// The connection that is named in Host once was the asker's, and the kernel shows what is left of
// it as root's.
TEST(PageAccess, HostSaysNothingAboutWhoAsks) {
  PageAccess access(loopback("0.0.0.0"));
  const Connected some;
  const uint16_t port = some.request.port;
  const auto accept_one = [&some] {
    return Fd(::accept4(some.listener.get(), nullptr, nullptr, SOCK_CLOEXEC));
  };
  Fd before = connect_from({"127.0.0.1", 0}, {"127.0.0.3", port});
  Fd before_accepted = accept_one();
  const TcpEnd end = own_end_of(before);
  before = Fd();
  before_accepted = Fd();  // TIME-WAIT at the client's end
  const Fd client = connect_from(end, {"127.0.0.2", port});
  const Fd accepted = accept_one();
  ASSERT_TRUE(client.is_valid() && accepted.is_valid());
  WebRequest request = some.request;
  request.peer_port = end.port;
  request.host = "127.0.0.3";
  ASSERT_EQ(::fchown(client.get(), 65534, 65534), ::getuid() == 0 ? 0 : -1);
  request.user = 77;
  EXPECT_EQ(access.refuse(WebAccess::Data, request), std::nullopt);
  EXPECT_EQ(request.user, ::getuid() == 0 ? 65534 : ::getuid());
}

TEST(PageAccess, WhoHasHungUpIsAStranger) {
  for (const char* listened : {"127.0.0.1", "0.0.0.0"}) {
    PageAccess access(loopback(listened));
    Connected one;
    one.client = Fd();
    EXPECT_EQ(refusal_of(access, WebAccess::Data, one.request), 403) << listened;
  }
}

TEST(PageAccess, LoopbackWantsANameThatNobodyCanGiveAway) {
  PageAccess access(loopback("0.0.0.0"));
  Connected one;
  for (const char* host : {"localhost", "LOCALHOST:80", "127.0.0.1:9431", "[::1]:9431", "node-7"}) {
    one.request.host = host;
    EXPECT_EQ(refusal_of(access, WebAccess::Data, one.request), 0) << host;
  }
  for (const char* host :
       {"", "evil.example", "localhost.evil.example:9431", "node-7.evil.example"}) {
    one.request.host = host;
    EXPECT_EQ(refusal_of(access, WebAccess::Data, one.request), 403) << host;
    EXPECT_EQ(refusal_of(access, WebAccess::Open, one.request), 0) << host;
  }
}

TEST(PageAccess, ATokenOpensTheDataToAnybodyWhoHasIt) {
  PageAccess access(with_token("0123456789abcdef"));
  WebRequest request;
  request.peer_address = "192.0.2.9";
  request.host = "any.example";
  EXPECT_EQ(refusal_of(access, WebAccess::Page, request), 0);
  request.authorization = "Bearer 0123456789abcdef";
  EXPECT_EQ(refusal_of(access, WebAccess::Data, request), 0);
  for (const char* wrong : {"", "Bearer", "Bearer ", "0123456789abcdef", "Bearer 0123456789abcdeg",
                            "Bearer 0123456789abcdef ", "Bearer 0123456789abcde",
                            "bearer 0123456789abcdef", "Basic 0123456789abcdef"}) {
    request.authorization = wrong;
    EXPECT_EQ(refusal_of(access, WebAccess::Data, request), 401) << wrong;
  }
}

TEST(PageAccess, WhoGivesAWrongTokenHoldsUpNoOther) {
  PageAccess access(with_token("0123456789abcdef"));
  std::atomic<int> refused = 0, limited = 0;
  std::vector<std::thread> guessers;
  for (int i = 0; i < 8; ++i) {
    guessers.emplace_back([&] {
      const int status = refusal_of(access, WebAccess::Data, authorized("Bearer guess"));
      ++(status == 401 ? refused : limited);
      EXPECT_TRUE(status == 401 || status == 429) << status;
    });
  }
  EXPECT_EQ(refusal_of(access, WebAccess::Data, authorized("Bearer 0123456789abcdef")), 0);
  for (std::thread& guesser : guessers) guesser.join();
  EXPECT_EQ(refused + limited, 8);
  EXPECT_GE(refused, static_cast<int>(PageAccess::kDelayedMax));
}

}  // namespace
}  // namespace braid
