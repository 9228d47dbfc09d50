// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "base/lifetime.h"
#include "base/log.h"
#include "coordinator/knowledge_store.h"
#include "loop/work_thread.h"
#include "messages/plan_messages.h"
#include "planner/algorithm_sizes.h"
#include "tune/tuner.h"

namespace braid {

// What was tried in all jobs that this node coordinates, since the daemon's start. Read from any
// thread.
struct TuningCounters {
  std::atomic<uint64_t> trials{0};
  std::atomic<uint64_t> steps{0};
  std::atomic<uint64_t> changes{0};  // plans with other settings
  std::atomic<double> gain{0};       // of the job whose tuning has ended last; 0: none has
};

struct TuningOptions {
  bool is_on = false;
  TransferSettings defaults;  // what is configured, and to be beaten
  // What is good in most places: tried first where nothing is known.
  TransferSettings usual = {};
  uint32_t flows_max = 16;
  uint32_t chunk_bytes_max = 512 << 10;
  std::vector<std::string> searchers = {};  // names of Tuner::Options; none: the portfolio
  std::vector<std::string> pinned = {};     // names of transfer_parameters()
  uint32_t steps = 72;  // to measure, at most; more where an earlier gain is gone
  uint32_t ranks_per_node = 1;
  uint32_t rails = 1;
  uint32_t cores = 1;
  KnowledgeStore* knowledge = nullptr;  // may be none; as the next one, it outlives the jobs
  TuningCounters* counters = nullptr;   // may be none
};

// Which set is tuned, and what was tuned before it.
struct TuningTask {
  SetSummary set;
  uint32_t number = 1;  // of the set's tunings, from 1; what was learned holds for the first alone
  // Another set decided what holds for the whole job: flows, streams and window stay as they are.
  std::optional<TransferSettings> job_settings = {};
  // What the measured cost of hops and bytes asks for: tried first, where nothing is known.
  std::optional<AlgorithmSizes> sizes = {};
  // The set was tuned before, on another network: this holds, and the search begins there.
  std::optional<TransferSettings> holding = {};
};

// One tuning of a job's set by the coordinator: asks a Tuner what to try, says which settings the
// set is to change to, and gives the Tuner the times of the steps, of each the slowest node's.
//
//   waiting    --begin()--> choosing
//   choosing   --the tuner's answer--> changing, or measuring with the same settings
//   changing   --on_changed(): the nodes have agreed on a step--> measuring, or over
//   measuring  --the turn's steps are measured--> choosing
//              --on_progress()--> changing
//
// Control loop only; while it is choosing, the tuner works on another thread.
class JobTuning {
 public:
  static constexpr uint32_t kStepsMin = 30;    // TuningOptions::steps
  static constexpr uint32_t kStepsMax = 3000;  //
  // After the first change, in which flows are opened and nothing has settled.
  static constexpr uint64_t kSettleSteps = 2;
  // So many steps whose times do not come end it.
  static constexpr uint64_t kStepsWithoutTimeMax = 64;
  static constexpr size_t kOpenStepsMax = 64;  // of which not all nodes have said anything

  struct Change {
    TransferSettings settings;
    uint32_t flows_open = 0;
    bool reports_steps = false;
  };

  // An error: these options leave nothing that could be tuned; it says why. `worker`: where the
  // tuner works; none: on the loop. `on_chosen`: change() has something new.
  static Result<std::unique_ptr<JobTuning>> create(JobLabel job, size_t nodes,
                                                   const TuningOptions& options,
                                                   const TuningTask& task, WorkThread* worker,
                                                   std::function<void()> on_chosen);
  JobTuning(const JobTuning&) = delete;
  JobTuning& operator=(const JobTuning&) = delete;

  // It is known what the same job has ended with before: that should hold at once.
  bool is_known() const { return is_known_; }
  void begin();
  bool is_waiting() const { return state_ == State::Waiting; }
  bool is_over() const { return state_ == State::Over; }
  bool is_given_up() const { return is_given_up_; }

  // What all nodes shall change to; the same until one of the next two is called. Nothing: not now.
  std::optional<Change> change() const;
  void on_changed(uint64_t from_step);
  // It cannot be done; what holds, stays.
  void give_up(const std::string& reason);
  // Steps come no more. True: change() ends the tuning; else it is not waiting for a step just now.
  bool stop(const std::string& reason);

  // The time that a step took on a node; of a plan of this tuning.
  void on_step(NodeId from, uint64_t step, uint64_t nanoseconds);
  // A node is in this step. True: it is too long ago that a time came (there is none where a step
  // does not reduce all tensors); change() ends the tuning.
  bool on_progress(uint64_t step);

  // For braidctl: see docs/tuning.md.
  std::string to_json() const;

 private:
  enum class State : uint8_t { Waiting, Choosing, Changing, Measuring, Over };

  JobTuning(JobLabel job, size_t nodes, const TuningOptions& options, const TuningTask& task,
            KnowledgeKey key, Tuner tuner, WorkThread* worker, std::function<void()> on_chosen);
  // What is known of the tuner, also while it works.
  struct Known {
    explicit Known(const Tuner& tuner)
        : trials(tuner.trials()),
          winner(tuner.winner()),
          incumbent(tuner.incumbent()),
          gain(tuner.gain()),
          noise(tuner.noise()) {}
    std::vector<Trial> trials;
    Setting winner;
    Setting incumbent;
    double gain;
    double noise;
  };
  struct Choice {
    std::optional<Tuner::Turn> turn;
    Known known;
  };
  static Choice choose(Tuner& tuner, const std::optional<Tuner::Turn>& measured,
                       std::span<const double> seconds);

  TransferSettings settings_of(const Setting& setting) const;
  void next_turn();
  void on_choice(Choice& choice);
  std::string reason_to_keep() const;
  void finish();

  const JobLabel job_;
  const size_t nodes_;
  const TuningOptions options_;
  const TuningTask task_;
  const KnowledgeKey key_;
  std::optional<Knowledge::Found> found_;
  bool is_known_ = false;
  const SearchSpace space_;
  const Setting configured_;  // and to be beaten
  Known tuned_;
  const std::shared_ptr<Tuner> tuner_;  // while this is choosing: the worker's
  WorkThread* const worker_;
  const std::function<void()> on_chosen_;
  State state_ = State::Waiting;
  bool is_given_up_ = false;
  std::string reason_ = "";          // for its end; empty: a duel has decided, or none yet
  std::optional<Tuner::Turn> turn_;  // nothing: the last change, to the winner
  std::optional<Setting> in_force_;  // while steps are reported
  uint64_t measured_from_ = 0;       // step
  uint64_t steps_measured_ = 0;
  uint64_t first_step_ = 0;  // with settings of this tuning
  uint64_t last_step_ = 0;   // that was measured
  uint64_t seen_step_ = 0;   // that a node has reported
  struct OpenStep {
    std::set<NodeId> nodes;
    uint64_t slowest_ns = 0;
  };
  std::map<uint64_t, OpenStep> open_steps_;
  std::vector<double> seconds_;  // of the turn
  Lifetime lifetime_;            // of what is asked of the plan thread
};

}  // namespace braid
