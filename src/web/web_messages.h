// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <sys/types.h>

namespace braid {

// One GET or HEAD, as a route is told of it. What stands here comes from a stranger.
struct WebRequest {
  std::string peer_address;  // "127.0.0.1"
  uint16_t peer_port = 0;
  std::string own_address;         // that the connection goes to; empty: it is not known
  uint16_t port = 0;               // of this server
  std::string host;                // as the browser calls this server; empty: it does not say
  std::string authorization;       // the header, whole; empty: there is none
  std::string query;               // what stands behind the path's ?, as it came
  std::vector<std::string> names;  // what stands in the path where the route's has NAME, decoded
  uid_t user = 0;                  // as whom the asker sees; 0: all
};

inline constexpr std::string_view kPlainText = "text/plain; charset=utf-8";
inline constexpr std::string_view kJson = "application/json";

struct WebReply {
  int status = 200;
  std::string_view content_type = kPlainText;                     // of static storage
  std::shared_ptr<const std::string> body;                        // nothing: empty
  std::vector<std::pair<std::string_view, std::string>> headers;  // further ones; names are static
};

// A sentence, with a line end.
WebReply text_reply(int status, std::string text);

}  // namespace braid
