// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <string>

namespace braid {

// What the kernel has sent on this process's TCP connections to some hosts.
struct TcpSegmentsSent {
  uint64_t segments = 0;  // with data, each time that one was sent
  uint64_t resent = 0;    // of these, again
};

// `addresses`: of the hosts, numeric. Looks at all of the process's descriptors, so it is not for a
// loop: about a microsecond for each. Any thread.
TcpSegmentsSent tcp_segments_sent(std::span<const std::string> addresses);

}  // namespace braid
