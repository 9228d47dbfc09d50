// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>

#include "job/job.h"
#include "loop/work_thread.h"
#include "telling/node_queries.h"
#include "timeline/timeline_files.h"

namespace braid {

// What this node's loops have noted of its jobs: told when it is asked for, and written into a file
// when a job fails. Control loop only; JSON is made, and files are written, on another thread.
class JobTimelines {
 public:
  static constexpr size_t kTellingsMax = 8;  // at a time: each may copy all that the loops keep
  static constexpr size_t kFileSpanBytesMax = 1 << 20;  // of the spans in a file, as to_json's
  // A job without planned tensors has no steps: so many operations stand for one.
  static constexpr size_t kOperationsPerStep = 100;

  // `services` and `maker` outlive it. `directory`: of the files; empty: none are written.
  JobTimelines(const JobServices& services, WorkThread& maker, std::string directory)
      : services_(services), maker_(maker), directory_(std::move(directory)) {}
  ~JobTimelines() { lifetime_.end(); }

  // The span of the latest `steps` until now; it begins at 0 where less than one step is known.
  NodeQueries::Window window(const Job& job, uint32_t steps) const;
  // Its NodeTimeline in that span of time, as JSON of at most span.bytes_max. Nothing: none is kept
  // here (its loops note nothing), or kTellingsMax are under way. Calls back once, later.
  void tell(const Job& job, const TimelineSpan& span, NodeQueries::Told told);
  // Writes the file of a job that ends now.
  void write_failed(const Job& job, const Status& reason);

 private:
  using Make = std::function<void(TimelineSource source)>;
  // Copies, then calls `make` on the other thread and `done` on this one.
  void collect(const Job& job, const TimelineFilter& wanted, Make make, std::function<void()> done);

  const JobServices& services_;
  WorkThread& maker_;
  const std::string directory_;
  TimelineFileLimits limits_;
  size_t tellings_ = 0;
  Lifetime lifetime_;  // of what comes from the loops and the thread
};

}  // namespace braid
