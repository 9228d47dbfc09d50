// SPDX-License-Identifier: Apache-2.0
#include "web/web_server.h"

#include <atomic>
#include <latch>
#include <stdexcept>
#include <thread>

#include <gtest/gtest.h>

#include "web_client.h"

namespace braid {
namespace {

using testing::body_of;
using testing::connect_to;
using testing::get;
using testing::send_text;
using testing::status_of;
using testing::talk;

std::unique_ptr<WebServer> serve(std::vector<WebRoute> routes, PageAccessOptions access = {}) {
  access.listen_address = "127.0.0.1";
  auto server = WebServer::create({"127.0.0.1", 0, std::move(access), std::move(routes)});
  EXPECT_TRUE(server.is_ok()) << server.status().message();
  return std::move(server).value();
}

WebRoute told(std::string_view path, std::string text, WebAccess access = WebAccess::Open) {
  return {path, access,
          [text = std::move(text)](const WebRequest&) { return text_reply(200, text); }};
}

WebRoute named(std::string_view path) {
  return {path, WebAccess::Open,
          [](const WebRequest& request) { return text_reply(200, request.names.front()); }};
}

TEST(WebServer, AnswersByPath) {
  const auto server = serve({told("/", "root"), told("/a", "one"), named("/jobs/NAME/steps")});
  EXPECT_EQ(body_of(get(server->port(), "/")), "root\n");
  EXPECT_EQ(body_of(get(server->port(), "/a")), "one\n");
  EXPECT_EQ(body_of(get(server->port(), "/a?b=c/d")), "one\n");
  EXPECT_EQ(body_of(talk(server->port(), "GET /a HTTP/1.0")), "one\n");
}

TEST(WebServer, OtherPathsAreNotFoundAndNameThoseThatAre) {
  const auto server = serve({told("/a", "one"), named("/jobs/NAME/steps")});
  for (const char* path : {"/b", "/", "/a/", "/jobs//steps", "/etc/passwd", "/../a/.."}) {
    const std::string answer = get(server->port(), path);
    EXPECT_EQ(status_of(answer), 404) << path;
    EXPECT_EQ(body_of(answer), "There is no such path. These are there:\n/a\n/jobs/NAME/steps\n");
  }
  EXPECT_EQ(status_of(get(server->port(), "/%zz")), 400);
}

TEST(WebServer, OnlyReads) {
  std::atomic<int> asked = 0;
  const auto server = serve({{"/a", WebAccess::Open, [&](const WebRequest&) {
                                ++asked;
                                return text_reply(200, "one");
                              }}});
  for (const char* method : {"POST", "PUT", "DELETE", "OPTIONS", "PATCH", "CONNECT"}) {
    const std::string answer =
        talk(server->port(), std::string(method) + " /a HTTP/1.1\r\nHost: localhost");
    EXPECT_TRUE(status_of(answer) == 405 || status_of(answer) == 400) << method << ": " << answer;
    EXPECT_EQ(answer.find("Access-Control"), std::string::npos);
  }
  EXPECT_EQ(asked, 0);
  const std::string head = talk(server->port(), "HEAD /a HTTP/1.1\r\nHost: localhost");
  EXPECT_EQ(status_of(head), 200);
  EXPECT_NE(head.find("Content-Length: 4\r\n"), std::string::npos) << head;
  EXPECT_EQ(body_of(head), "");
}

TEST(WebServer, TellsBrowsersToTrustNothingElse) {
  const auto server = serve({told("/a", "one")});
  for (const char* path : {"/a", "/b"}) {
    const std::string answer = get(server->port(), path, "\r\nOrigin: http://evil.example");
    for (const char* header :
         {"Content-Security-Policy: default-src 'none';", "frame-ancestors 'none'",
          "X-Content-Type-Options: nosniff", "Referrer-Policy: no-referrer",
          "Cache-Control: no-store", "Connection: close"})
      EXPECT_NE(answer.find(header), std::string::npos) << header << " in " << answer;
    EXPECT_EQ(answer.find("Access-Control"), std::string::npos);
  }
}

TEST(WebServer, ShowsDataToWhoMaySeeIt) {
  PageAccessOptions access;
  access.mode = PageMode::Token;
  const std::string token = "0123456789abcdef";
  access.token.assign(token.begin(), token.end());
  const auto server = serve({told("/", "page", WebAccess::Page),
                             told("/data", "secret", WebAccess::Data), told("/metrics", "open")},
                            access);
  EXPECT_EQ(status_of(get(server->port(), "/")), 200);
  EXPECT_EQ(status_of(get(server->port(), "/metrics")), 200);
  const std::string refused = get(server->port(), "/data");
  EXPECT_EQ(status_of(refused), 401);
  EXPECT_NE(refused.find("WWW-Authenticate: Bearer\r\n"), std::string::npos);
  EXPECT_EQ(refused.find("secret"), std::string::npos);
  EXPECT_EQ(body_of(get(server->port(), "/data", "\r\nAuthorization: Bearer " + token)),
            "secret\n");
}

TEST(WebServer, KnowsWhoseConnectionItIs) {
  const auto server = serve({{"/who", WebAccess::Data, [](const WebRequest& request) {
                                return text_reply(200, std::to_string(request.user));
                              }}});
  EXPECT_EQ(body_of(get(server->port(), "/who")), std::to_string(::getuid()) + "\n");
  EXPECT_EQ(status_of(talk(server->port(), "GET /who HTTP/1.1\r\nHost: evil.example")), 403);
}

TEST(WebServer, WhatIsNoHttpIsRefused) {
  const auto server = serve({told("/a", "one")});
  EXPECT_EQ(status_of(talk(server->port(), "nonsense")), 400);
  EXPECT_EQ(status_of(talk(server->port(), std::string("\0\xff\x01", 3))), 400);
  const std::string long_header(WebServer::kRequestBytesMax, 'x');
  EXPECT_GE(status_of(get(server->port(), "/a", "\r\nX: " + long_header)), 400);
  EXPECT_EQ(status_of(get(server->port(), "/a")), 200);
}

TEST(WebServer, AnErrorOfARouteIsAnswered) {
  const auto server = serve({{"/a", WebAccess::Open, [](const WebRequest&) -> WebReply {
                                throw std::runtime_error("no memory");
                              }}});
  const std::string answer = get(server->port(), "/a");
  EXPECT_EQ(status_of(answer), 500);
  EXPECT_EQ(body_of(answer), "no memory\n");
}

TEST(WebServer, ManyMayAskAtOnce) {
  std::latch all(WebServer::kThreads);
  const auto server = serve({{"/a", WebAccess::Open, [&](const WebRequest&) {
                                all.arrive_and_wait();
                                return text_reply(200, "one");
                              }}});
  std::vector<std::thread> askers;
  std::atomic<int> answered = 0;
  for (uint32_t i = 0; i < WebServer::kThreads; ++i) {
    askers.emplace_back([&] { answered += status_of(get(server->port(), "/a")) == 200 ? 1 : 0; });
  }
  for (std::thread& asker : askers) asker.join();
  EXPECT_EQ(answered, static_cast<int>(WebServer::kThreads));
}

// More of them than the server has threads.
TEST(WebServer, ClientsThatHaveStoppedHoldUpNobodyForLong) {
  const auto server = serve({told("/a", "one")});
  std::vector<Fd> stopped;
  for (int i = 0; i < 10; ++i) {
    stopped.push_back(connect_to(server->port()));
    ASSERT_TRUE(stopped.back().is_valid());
    // Half of them have asked in part.
    ASSERT_TRUE(send_text(stopped.back(), i % 2 == 0 ? "" : "GET /metrics HT"));
  }
  EXPECT_EQ(body_of(get(server->port(), "/a")), "one\n");
}

TEST(WebServer, WhoDoesNotReadIsLetGo) {
  const auto server = serve({told("/large", std::string(64 << 20, 'x')), told("/a", "one")});
  std::vector<Fd> stopped;
  for (uint32_t i = 0; i < WebServer::kThreads; ++i) {
    stopped.push_back(connect_to(server->port()));
    ASSERT_TRUE(send_text(stopped.back(), "GET /large HTTP/1.1\r\nHost: localhost\r\n\r\n"));
  }
  EXPECT_EQ(body_of(get(server->port(), "/a")), "one\n");
}

TEST(WebServer, ALargeAnswerComesWhole) {
  const std::string large(5 << 20, 'x');
  const auto server = serve({told("/large", large)});
  EXPECT_EQ(body_of(get(server->port(), "/large")), large + "\n");
}

TEST(WebServer, AskedNoMoreOnceDestroyed) {
  auto server = serve({told("/a", "one")});
  const uint16_t port = server->port();
  ASSERT_NE(get(port, "/a"), "");
  server.reset();
  EXPECT_EQ(get(port, "/a"), "");
}

TEST(WebServer, APortInUseIsExplained) {
  const auto first = serve({});
  const auto second = WebServer::create({"127.0.0.1", first->port(), {}, {}});
  ASSERT_FALSE(second.is_ok());
  const std::string& message = second.status().message();
  EXPECT_EQ(message.find(
                fmt::format("metrics.port: cannot serve /metrics on 127.0.0.1:{}", first->port())),
            0u);
  EXPECT_NE(message.find("Address already in use"), std::string::npos) << message;
}

TEST(WebServer, AnAddressOfAnotherHostIsExplained) {
  const auto server = WebServer::create({"192.0.2.200", 0, {}, {}});
  ASSERT_FALSE(server.is_ok());
  EXPECT_NE(server.status().message().find("metrics.address"), std::string::npos);
}

}  // namespace
}  // namespace braid
