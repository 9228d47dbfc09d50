// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>

namespace braid {

// The shortest round trip that the kernel has seen lately on a connected TCP socket, in
// nanoseconds: the way there and back, without what keeps either process busy. Nothing: it has not
// seen any.
std::optional<uint64_t> tcp_round_trip_ns(int socket);

}  // namespace braid
