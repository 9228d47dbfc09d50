// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

namespace braid {

// The sockets of this user's personal daemons (braidd --personal, braid-run), in order. None where
// he means another daemon: he has named it (`named`, the value of --socket, or BRAID_SOCKET), or
// the node's lets him in.
std::vector<std::string> personal_sockets(const std::string& named);

}  // namespace braid
