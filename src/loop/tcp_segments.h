// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace braid {

// Control connections carry little, and must stand on paths that lose packets of full size: see
// FullSizeLoss.
inline constexpr int kControlSegmentBytes = 1200;

// Makes the connections of `socket` use segments of at most `bytes`, in both directions; 0 changes
// nothing. For a TCP socket that is not connected yet, or that will listen.
void limit_tcp_segments(int socket, int bytes);

}  // namespace braid
