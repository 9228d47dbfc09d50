// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/peer.h"
#include "messages/codec_sample.h"
#include "messages/plan_messages.h"
#include "planning/guard_board.h"

namespace braid {

struct GuardOptions {
  uint32_t every_steps = 0;  // of a set one step is sampled; 0: none
  // Limits; 0: there is none.
  double residual_max = 0;
  double cosine_min = 0;
  double saturation_max = 0;
  GuardBoard* board = nullptr;  // may be none; outlives the jobs
};

// What all nodes together say of one group in one step.
struct GuardReading {
  uint64_t set = 0;
  uint32_t plan = 0;  // that the step followed
  uint64_t step = 0;
  std::vector<uint64_t> tensors;  // hashes, in the group's order
  CodecSpec codec;
  std::optional<double> residual;  // see CodecLoss
  std::optional<double> cosine;
  double saturation = 0;
  uint64_t not_finite = 0;
};

// Watches how much the codecs of one job lose. It joins the samples of all nodes, and says which
// tensors are to travel plainly: those that in so many readings in a row have passed a limit.
// Pure: no clock and no loop.
class CodecGuard {
 public:
  static constexpr uint32_t kReadingsInARow = 3;
  // Operations of the whole job with samples of only some nodes, at most. Beyond that, those of the
  // oldest step are forgotten.
  static constexpr size_t kJoinsMax = 4096;
  static constexpr size_t kReadingsMax = 1 << 16;
  static constexpr size_t kTensorsMax = 1 << 20;  // that have passed a limit lately

  CodecGuard(std::string job_name, size_t nodes, GuardOptions options)
      : job_name_(std::move(job_name)), nodes_(nodes), options_(options) {}

  // A node's sample; each node's counts once. Returns the tensors that are to go plain now.
  std::optional<PlainGroup> add(NodeId from, const CodecSample& sample);
  // They do from now on: nothing that comes about them counts.
  void set_plain(uint64_t set, const std::vector<uint64_t>& tensors);
  // The set is gone on all nodes.
  void forget(uint64_t set);

  const GuardOptions& options() const { return options_; }
  // The latest of each group, by set and first tensor. Those of groups that are no more go when
  // others have been read since.
  std::vector<GuardReading> readings() const;
  // The worst of the readings, by codec.
  std::vector<GuardBoard::Entry> worst() const;

 private:
  using GroupKey = std::pair<uint64_t, uint64_t>;            // set, first tensor
  using JoinKey = std::tuple<uint64_t, uint64_t, uint64_t>;  // step, set, first tensor
  struct Join {
    std::set<NodeId> nodes;
    CodecSample sum;
  };

  std::optional<PlainGroup> judge(const GuardReading& reading);
  std::optional<PlainGroup> passed_limit(const GuardReading& reading) const;
  void keep(GuardReading reading);

  const std::string job_name_;
  const size_t nodes_;
  const GuardOptions options_;
  std::map<JoinKey, Join> joins_;
  std::map<GroupKey, GuardReading> readings_;
  // Readings in a row that have passed a limit, by set and tensor: groups may change meanwhile.
  std::map<GroupKey, uint32_t> passed_;
  std::set<GroupKey> plain_;
};

}  // namespace braid
