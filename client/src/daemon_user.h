// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "base/status.h"

namespace braid::client {

// Checks, before anything is sent, which user listens at `path`. He is given this process's memory,
// so he must be root, the user 'braid', this process's own user, or the user number in
// $BRAID_DAEMON_UID.
Status check_daemon_user(int socket, const std::string& path);

}  // namespace braid::client
