// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <ucp/api/ucp.h>

#include "base/status.h"
#include "net/ucx/ucx_settings.h"

namespace braid {

// UCX on one rail. Shared by the workers of all I/O loops; goes when the last of them has gone.
class UcxContext {
 public:
  // Fails if UCX cannot use the rail, naming those that it can. UCX follows UCX_… variables of the
  // environment in what braid does not set itself.
  static Result<std::shared_ptr<UcxContext>> create(const UcxContextOptions& options);
  UcxContext(const UcxContext&) = delete;
  UcxContext& operator=(const UcxContext&) = delete;
  ~UcxContext();

  ucp_context_h handle() const { return handle_; }
  const std::string& rail() const { return options_.rail; }
  const UcxContextOptions& options() const { return options_; }
  // All that UCX found is TCP: every worker listens.
  bool is_tcp_alone() const { return is_tcp_alone_; }

 private:
  UcxContext(ucp_context_h handle, UcxContextOptions options)
      : handle_(handle), options_(std::move(options)) {}

  const ucp_context_h handle_;
  const UcxContextOptions options_;
  bool is_tcp_alone_ = false;
};

}  // namespace braid
