// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "explain/node_facts.h"
#include "job/job.h"
#include "timeline/timeline_source.h"

namespace braid {

// What a node tells of a job when somebody asks why its steps take what they take; without what is
// the node's own.
NodeFacts job_facts(const Job& job, uint64_t now_ns);

// What a timeline of the job needs beside what the loops have noted; without node and rails.
TimelineSource job_timeline_source(const Job& job, uint64_t now_ns);

// A process of this node is a trainer of both jobs.
bool share_a_process(const Job& one, const Job& other);

}  // namespace braid
