// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "base/status.h"
#include "braidctl/page_client.h"
#include "client/status_client.h"

namespace braid {

// Where braidctl gets a daemon's answers: through the socket of this node's, or through the page of
// another node's. The page tells less: it only reads, and has no tuning and no timelines of all
// nodes.
class DaemonSource {
 public:
  // `given`: as --socket says; empty: the usual place.
  explicit DaemonSource(const std::string& given) : socket_(daemon_socket_path(given)) {}
  explicit DaemonSource(PageAddress page) : page_(std::move(page)) {}

  // See the functions query_… of status_client.h.
  Result<std::string> status(uint32_t timeout_ms) const;
  Result<JobsReply> plans(const std::string& job, uint32_t timeout_ms) const;
  Result<JobsReply> facts(const std::string& job, uint32_t timeout_ms) const;
  // For what only the socket tells. InvalidArgument: the source is a page; `command` is named.
  Result<std::string> socket(const std::string& command) const;

 private:
  // What the page's `answer` ("steps") says of a job, or of all if it is empty: one array.
  Result<JobsReply> page_arrays(const std::string& job, const std::string& answer,
                                uint32_t timeout_ms) const;

  std::string socket_;
  std::optional<PageAddress> page_;
};

}  // namespace braid
