// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "base/status.h"

namespace braid::client {

// Whoever listens at `path` is given this process's memory, so it must be somebody who may have it:
// root, the user 'braid', this process's own user, or the user number in $BRAID_DAEMON_UID. Before
// anything is sent.
Status check_daemon_user(int socket, const std::string& path);

}  // namespace braid::client
