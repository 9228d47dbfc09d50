// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include <sys/types.h>

#include "base/peer.h"
#include "base/status.h"
#include "messages/job_owner.h"
#include "proto/client_generated.h"

namespace braid {

// Which place in which job a trainer asks for: its OpenJob, checked.
struct OpenRequest {
  static constexpr size_t kJobNameBytesMax = 255;
  static constexpr size_t kAddressBytesMax = 255;  // a host's name has 253

  JobIdentity identity;
  bool has_token = false;
  std::string master_address;
  NodeId master_node = 0;  // 0: any
  uint32_t rank = 0;
  uint32_t world_size = 0;
  uint32_t timeout_ms = 0;
  uint32_t weight = 1;
  uint32_t done_capacity = 0;  // operations that it holds at a time
};

// InvalidArgument: none can have it.
Status check_job_name(std::string_view name);
// InvalidArgument: something in it makes no sense.
Result<OpenRequest> parse_open_job(const proto::OpenJob& open, uid_t user);

}  // namespace braid
