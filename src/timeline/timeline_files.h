// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <string>
#include <utility>

#include "base/status.h"

namespace braid {

// Which failed jobs get a file. Jobs that fail one after the other fill no disk, and one user's
// leave room for those of others.
class TimelineFileLimits {
 public:
  static constexpr uint64_t kPeriodNs = 60'000'000'000;
  static constexpr size_t kFilesPerPeriod = 16;
  static constexpr size_t kFilesPerUser = 8;  // in a period
  // In a period a user's jobs of one name get one file.

  // True: it gets one.
  bool take(uint32_t user, const std::string& job, uint64_t now_ns);

 private:
  struct Taken {
    uint32_t user = 0;
    std::string job;
    uint64_t at_ns = 0;
  };
  std::deque<Taken> taken_;  // within the period, the oldest first
};

// Names of jobs and nodes are hostile: what is not a letter, a digit, '.', '_' or '-' becomes '_'.
// `unix_ms`: milliseconds since 1970. "JOB-EPOCH-NODE-20260131T235959.123Z.json"
std::string timeline_file_name(const std::string& job, uint32_t epoch, const std::string& node,
                               uint64_t unix_ms);

// The files that tell of jobs that failed, in a directory that may hold others. One thread.
class TimelineFiles {
 public:
  static constexpr size_t kFilesMax = 32;  // the oldest go

  // Is made when the first file is written.
  explicit TimelineFiles(std::string directory) : directory_(std::move(directory)) {}

  // `name`: by timeline_file_name. A file appears when it is complete; for its owner and group.
  // Returns its path.
  Result<std::string> write(const std::string& name, const std::string& content) const;

 private:
  void remove_oldest() const;

  const std::string directory_;
};

}  // namespace braid
