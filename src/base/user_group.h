// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include <sys/types.h>

#include "base/status.h"

namespace braid {

// The number of the group that client.group names. NotFound: there is none on this machine.
Result<gid_t> find_client_group(const std::string& group);

}  // namespace braid
