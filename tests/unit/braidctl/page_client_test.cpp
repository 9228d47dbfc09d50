// SPDX-License-Identifier: Apache-2.0
#include "braidctl/page_client.h"

#include <array>
#include <functional>
#include <string>
#include <thread>

#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include "base/fd.h"

namespace braid {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr uint32_t kPatienceMs = 60'000;

// Takes one connection, and answers it with these bytes.
class OneAnswer {
 public:
  explicit OneAnswer(std::string answer) : answer_(std::move(answer)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = ::htonl(INADDR_LOOPBACK);
    socklen_t length = sizeof(address);
    auto* any = reinterpret_cast<sockaddr*>(&address);
    EXPECT_EQ(::bind(listening_.get(), any, length), 0);
    EXPECT_EQ(::listen(listening_.get(), 1), 0);
    EXPECT_EQ(::getsockname(listening_.get(), any, &length), 0);
    port_ = ::ntohs(address.sin_port);
    thread_ = std::thread([this] {
      const Fd connection(::accept(listening_.get(), nullptr, nullptr));
      std::array<char, 4096> part{};
      while (asked_.find("\r\n\r\n") == std::string::npos) {
        const ssize_t got = ::recv(connection.get(), part.data(), part.size(), 0);
        if (got <= 0) break;
        asked_.append(part.data(), static_cast<size_t>(got));
      }
      ::send(connection.get(), answer_.data(), answer_.size(), MSG_NOSIGNAL);
    });
  }
  ~OneAnswer() {
    if (thread_.joinable()) thread_.join();
  }

  PageAddress address(const std::string& token = "") const { return {"127.0.0.1", port_, token}; }
  // Once it was answered.
  const std::string& asked() {
    thread_.join();
    return asked_;
  }

 private:
  const std::string answer_;
  const Fd listening_{::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)};
  uint16_t port_ = 0;
  std::string asked_;
  std::thread thread_;
};

std::string reply(const std::string& status, const std::string& body) {
  return "HTTP/1.1 " + status + "\r\nContent-Length: " + std::to_string(body.size()) + "\r\n\r\n" +
         body;
}

Status page_error(const std::string& answer, const std::string& token = "") {
  const OneAnswer page(answer);
  return get_page(page.address(token), "/api/status", kPatienceMs).status();
}

TEST(PageClient, AsksWithTheTokenAndReturnsTheBody) {
  OneAnswer page(reply("200 OK", "{\"a\": 1}"));
  const auto body = get_page(page.address("secret"), "/api/status", kPatienceMs);
  ASSERT_TRUE(body.is_ok()) << body.status().to_string();
  EXPECT_EQ(*body, "{\"a\": 1}");
  EXPECT_THAT(page.asked(), AllOf(HasSubstr("GET /api/status HTTP/1.1\r\n"),
                                  HasSubstr("\r\nAuthorization: Bearer secret\r\n")));
}

TEST(PageClient, SaysWhatToDoAboutTheToken) {
  EXPECT_THAT(page_error(reply("401 Unauthorized", "no")).message(), HasSubstr("--token-file"));
  EXPECT_THAT(page_error(reply("401 Unauthorized", "no"), "wrong").message(),
              AllOf(HasSubstr("does not take this token"), ::testing::Not(HasSubstr("wrong"))));
}

TEST(PageClient, PassesOnWhatThePageSays) {
  const Status unknown = page_error(reply("404 Not Found", "no job\nmore"));
  EXPECT_EQ(unknown.code(), StatusCode::NotFound);
  EXPECT_THAT(unknown.message(), HasSubstr("answers 404: no job"));
  EXPECT_EQ(page_error(reply("403 Forbidden", "not you")).code(), StatusCode::PermissionDenied);
  EXPECT_EQ(page_error(reply("503 Busy", "later")).code(), StatusCode::Unavailable);
}

TEST(PageClient, RefusesWhatIsNoPage) {
  for (const char* answer : {"", "SSH-2.0-x\r\n\r\n", "HTTP/1.1 20", "HTTP/1.1 x\r\n\r\n"})
    EXPECT_THAT(page_error(answer).message(), HasSubstr("is no page of braidd")) << answer;
  EXPECT_THAT(page_error("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nshort").message(),
              HasSubstr("ended in the middle"));
}

TEST(PageClient, NamesGoIntoPaths) {
  EXPECT_EQ(as_path_part("train/tp0 ü%"), "train%2Ftp0%20%C3%BC%25");
}

TEST(PageClient, TakesTheTokenOfTheEnvironment) {
  EXPECT_EQ(*read_page_token("", "secret"), "secret");
  EXPECT_EQ(*read_page_token("", nullptr), "");
  EXPECT_THAT(read_page_token("", "a\r\nb").status().message(), HasSubstr("$BRAID_PAGE_TOKEN"));
  EXPECT_THAT(read_page_token("/none", nullptr).status().message(),
              AllOf(HasSubstr("--token-file"), HasSubstr("/none")));
}

}  // namespace
}  // namespace braid
