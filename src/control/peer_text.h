// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "base/peer.h"

namespace braid {

// "node 'b' (10.0.0.2:7410)": how messages name a peer.
std::string describe(const Peer& peer);

}  // namespace braid
