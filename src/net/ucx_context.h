// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <vector>

#include <ucp/api/ucp.h>

#include "base/status.h"

namespace braid {

struct UcxContextOptions {
  std::string rail;                     // network device
  std::vector<std::string> transports;  // UCX_TLS
  size_t message_bytes = 0;  // the largest message, headers included: goes out as one segment
};

// UCX on one rail. Shared by the workers of all I/O loops; goes when the last of them has gone.
class UcxContext {
 public:
  // Fails if UCX cannot use the rail, naming those that it can. UCX_… variables in the environment
  // win over `options`.
  static Result<std::shared_ptr<UcxContext>> create(const UcxContextOptions& options);
  UcxContext(const UcxContext&) = delete;
  UcxContext& operator=(const UcxContext&) = delete;
  ~UcxContext();

  ucp_context_h handle() const { return handle_; }
  const std::string& rail() const { return rail_; }
  // All that UCX found is TCP: every worker listens.
  bool is_tcp_alone() const { return is_tcp_alone_; }

 private:
  UcxContext(ucp_context_h handle, std::string rail) : handle_(handle), rail_(std::move(rail)) {}

  const ucp_context_h handle_;
  const std::string rail_;
  bool is_tcp_alone_ = false;
};

// "1.13.1": of the library that is loaded, which need not be the one that braid was built with.
std::string ucx_version();

}  // namespace braid
