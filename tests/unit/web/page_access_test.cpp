// SPDX-License-Identifier: Apache-2.0
#include "web/page_access.h"

#include <thread>

#include <gtest/gtest.h>
#include <unistd.h>

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

// A connection to a socket of this process, and what its other side is told.
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
  }
  Fd listener{::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)};
  Fd client;
  WebRequest request;
};

int refusal_of(PageAccess& access, WebAccess what, WebRequest request) {
  const auto refusal = access.refuse(what, request);
  return refusal ? refusal->status : 0;
}

TEST(UserOfConnection, IsWhoHasTheOtherEnd) {
  const Connected one;
  EXPECT_EQ(
      user_of_connection({"127.0.0.1", one.request.peer_port}, {"127.0.0.1", one.request.port}),
      ::getuid());
}

TEST(UserOfConnection, NobodyHasWhatIsNotThere) {
  const Connected one;
  const TcpEnd other{"127.0.0.1", one.request.port};
  EXPECT_EQ(user_of_connection({"192.0.2.1", 1}, other), std::nullopt);
  EXPECT_EQ(user_of_connection({"nonsense", 1}, other), std::nullopt);
  // Of a socket that listens, no end of a connection.
  EXPECT_EQ(user_of_connection(other, {"192.0.2.1", 1}), std::nullopt);
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
