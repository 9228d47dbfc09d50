// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/log.h"
#include "operation/job_numbers.h"

namespace braid {

// How a job fares, in words for the log: now and then what has ended since the last time, and once
// all of it. If a job has steps (of planned tensors) these are counted, else its operations.
// Numbers are those of this node. Control loop only.
class JobProgress {
 public:
  // `numbers` outlives it. The job begins now.
  JobProgress(const JobNumbers& numbers, uint32_t ranks, uint32_t nodes, uint64_t now_ns);

  // Into the log: take_line() and summary(). `period_s` 0: nothing.
  void log(const JobLabel& job, uint32_t period_s, uint64_t now_ns);
  void log_end(const JobLabel& job, uint32_t period_s, std::string_view how, uint64_t now_ns) const;

  // "(64 ranks on 8 nodes): 1,200 steps, 145 of them in the last 60 s; 412 ms a step, 37 ms of it
  // exposed; all-reduces run at 1.86 Gbit/s bus bandwidth". Nothing: less than `period_ns` have
  // passed since the last time, or nothing has ended.
  std::optional<std::string> take_line(uint64_t period_ns, uint64_t now_ns);
  // "(64 ranks on 8 nodes) is over after 1h 2m: 1,200 steps, 412 ms a step …; 3,100 operations,
  // 12.3 GB". `how`: "is over".
  std::string summary(std::string_view how, uint64_t now_ns) const;

 private:
  // What had ended, at one moment.
  struct Done {
    uint64_t steps = 0;
    uint64_t step_ns = 0;
    uint64_t exposed_ns = 0;
    uint64_t operations = 0;
    uint64_t all_reduce_bytes = 0;
    uint64_t all_reduce_ns = 0;
  };
  Done done() const;
  static Done between(const Done& before, const Done& after);
  static std::string steps_text(const Done& done);
  // The bandwidth, as text: 2(n - 1)/n times the bytes that n ranks have got, by the time in which
  // at least one all-reduce was on its way. Empty: there was none.
  std::string bandwidth_text(const Done& done) const;

  const JobNumbers& numbers_;
  const uint32_t ranks_;
  const std::string who_;
  const uint64_t began_ns_;
  uint64_t told_ns_;
  Done told_;
};

}  // namespace braid
