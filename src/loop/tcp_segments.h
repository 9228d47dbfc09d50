// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace braid {

// Control connections carry little, and must stand on paths that lose packets of full size: see
// FullSizeLoss.
inline constexpr int kControlSegmentBytes = 1200;

// Of a TCP socket that is not connected yet, or that will listen: its connections use segments of
// so many bytes at most, in both directions. 0 changes nothing.
void limit_tcp_segments(int socket, int bytes);

}  // namespace braid
