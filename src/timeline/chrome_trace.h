// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "timeline/node_timeline.h"

namespace braid {

// The timeline in Chrome's trace event format ("Trace Event Format", JSON object form), which
// Perfetto (ui.perfetto.dev) and chrome://tracing show: a process for each node, with a track for
// each rank's trainer, then operations, streams, local reductions and flows. What overlaps on one
// of these gets further tracks of the same name. Times are microseconds after the first span, by
// the clock of the node that asked, which says `begin_ns` of `otherData` at the first one.
// docs/timeline.md says how to read it.
std::string to_chrome_trace(const JobTimeline& job);

}  // namespace braid
