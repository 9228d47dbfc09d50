// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

namespace braid {

// The sockets of this user's personal daemons (braidd --personal, braid-run), in order.
std::vector<std::string> personal_sockets();

}  // namespace braid
