// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "web/local_user.h"
#include "web/web_messages.h"

namespace braid {

// Who may read a route.
enum class WebAccess : uint8_t {
  Open,  // everybody who reaches the port: it tells no secrets
  Page,  // what the page is made of: the same everywhere, but it asks for data
  Data,  // names and processes of jobs
};

// page.access.
enum class PageMode : uint8_t { Off, Loopback, Token };

struct PageAccessOptions {
  PageMode mode = PageMode::Loopback;
  std::vector<uint8_t> token;
  std::string node_name;
  std::string listen_address;  // metrics.address
};

// The rules by which the page and its data are shown. Any thread.
class PageAccess {
 public:
  static constexpr uint32_t kWrongTokenDelayMs = 200;
  static constexpr uint32_t kDelayedMax = 2;  // requests with a wrong token that wait so long

  explicit PageAccess(PageAccessOptions options);

  // Other rules, for requests to come.
  void set_options(PageAccessOptions options);
  // Sets request.user. A reply: it is refused. May take kWrongTokenDelayMs.
  std::optional<WebReply> refuse(WebAccess access, WebRequest& request);

 private:
  std::shared_ptr<const PageAccessOptions> options() const;
  std::optional<WebReply> refuse_token(const PageAccessOptions& options, const WebRequest& request);

  mutable std::mutex mutex_;
  std::shared_ptr<const PageAccessOptions> options_;
  std::atomic<uint32_t> delayed_{0};
};

}  // namespace braid
