// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "web/page_access.h"
#include "web/web_messages.h"

namespace braid {

struct WebRoute {
  std::string_view path;  // "/api/jobs/NAME/steps": NAME stands for any name
  WebAccess access = WebAccess::Open;
  // Called by the server's threads, by several at once. Must return within a few seconds.
  std::function<WebReply(const WebRequest&)> answer;
};

struct WebServerOptions {
  std::string address;  // "::": IPv4 as well
  uint16_t port = 0;    // 0: any (tests)
  PageAccessOptions access;
  std::vector<WebRoute> routes;
};

// The daemon's HTTP server, on threads of its own: read-only, one request for each connection. Each
// connection holds a thread until it is answered, or has taken too long to ask or to read. Create
// and destroy on one thread; once it is destroyed no route is asked any more.
class WebServer {
 public:
  static constexpr uint32_t kThreads = 8;
  static constexpr uint32_t kRequestTimeoutMs = 2000;    // to ask
  static constexpr uint32_t kReplyTimeoutMs = 10'000;    // to read the answer
  static constexpr uint32_t kRequestBytesMax = 8 << 10;  // its head: it has no body

  static Result<std::unique_ptr<WebServer>> create(WebServerOptions options);
  WebServer(const WebServer&) = delete;
  WebServer& operator=(const WebServer&) = delete;
  ~WebServer();

  uint16_t port() const;
  void set_access(PageAccessOptions access);  // any thread

 private:
  struct State;
  explicit WebServer(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace braid
