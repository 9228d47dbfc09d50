// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

namespace braid {

// What guards have found in the jobs that this node coordinates, for its metrics. Any thread.
class GuardBoard {
 public:
  // The worst of all groups of a job that have this codec, each value by itself. Nothing: no group
  // has one.
  struct Entry {
    std::string job;
    std::string codec;  // with its parameters
    std::optional<double> residual;
    std::optional<double> cosine;
    double saturation = 0;
  };

  // Takes the place of what was there of this job; no entries: the job is over.
  void set(uint64_t job_key, std::vector<Entry> entries);
  // One for each name of a job and codec.
  std::vector<Entry> entries() const;

  void count_plain_groups(uint64_t groups) { plain_groups_ += groups; }
  uint64_t plain_groups() const { return plain_groups_; }

 private:
  mutable std::mutex mutex_;
  std::map<uint64_t, std::vector<Entry>> jobs_;  // by key
  std::atomic<uint64_t> plain_groups_{0};        // that have lost their codec since the start
};

// What is worse of both, value by value.
void take_worse(GuardBoard::Entry& entry, const GuardBoard::Entry& other);

}  // namespace braid
