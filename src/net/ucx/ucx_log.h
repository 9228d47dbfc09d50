// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace braid {

// From now on UCX's own log lines go where braid's go, prefixed "UCX". A warning or error of one
// kind (one place in UCX's source) is logged once, then at each power of two, with the count: a
// stranger who talks nonsense to a UCX port cannot fill the disk. May be called more than once,
// from any thread.
void route_ucx_log();

}  // namespace braid
