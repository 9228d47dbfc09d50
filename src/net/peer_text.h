// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "net/peer.h"

namespace braid {

// "node 'b' (10.0.0.2:7410)": how messages name a peer.
std::string describe(const Peer& peer);

// Text that a stranger sent, fit for a log line: control and non-ASCII bytes become '?', and it is
// cut after `bytes_max`.
std::string printable(std::string_view text, size_t bytes_max = 256);

}  // namespace braid
