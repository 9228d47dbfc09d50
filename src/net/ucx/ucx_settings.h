// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include <ucp/api/ucp.h>

namespace braid {

struct UcxContextOptions {
  std::string rail;                     // network device
  std::vector<std::string> transports;  // UCX_TLS
  size_t message_bytes = 0;  // the largest message, headers included: goes out as one segment
  bool prefers_v6 = false;   // on a rail that has addresses of both families

  bool is_tcp_alone() const { return transports == std::vector<std::string>{"tcp"}; }
};

// What braid sets itself for a context on `devices`. It depends on that: variables of the
// environment that say something else are ignored. They may be meant for an MPI or for NCCL.
void apply_ucx_settings(ucp_config_t* config, const UcxContextOptions& options,
                        const std::string& devices);

// The UCX_… variables of the environment, as the end of a sentence about what went wrong; empty:
// there are none.
std::string ucx_environment(const UcxContextOptions& options);

// Says once for all contexts which variables are ignored, and which others UCX follows.
void log_ucx_environment(const UcxContextOptions& options);

}  // namespace braid
