// SPDX-License-Identifier: Apache-2.0
#include "coordinator/job_tuning.h"

#include <algorithm>
#include <chrono>

#include "base/log.h"
#include "loop/compute.h"
#include "tune/transfer_space.h"

namespace braid {
namespace {

constexpr uint32_t kStepsPerTrial = 3;
constexpr uint32_t kDuelRounds = 5;
constexpr uint32_t kDuelSteps = kDuelRounds * 4;  // of a round: four turns of a step

NamedValues named(const TransferSettings& settings) {
  return {{"flows_per_link", settings.flows},
          {"streams", settings.streams},
          {"unit_bytes", settings.unit_bytes},
          {"chunk_bytes", settings.chunk_bytes},
          {"window_bytes", settings.window_bytes},
          {"direct_bytes", settings.direct_bytes},
          {"two_hops_bytes", settings.two_hops_bytes},
          {"halving_bytes", settings.halving_bytes},
          {"hierarchical", settings.is_hierarchical ? 2 : 0}};
}

// What the task's tuning has to beat, what of it stays, and what is tried first.
TuningOptions options_for(TuningOptions options, const TuningTask& task) {
  if (task.sizes) {
    options.usual.direct_bytes = task.sizes->direct_bytes;
    options.usual.two_hops_bytes = task.sizes->two_hops_bytes;
    options.usual.halving_bytes = task.sizes->halving_bytes;
  }
  if (!task.job_settings) return options;
  options.defaults.flows = task.job_settings->flows;
  options.defaults.streams = task.job_settings->streams;
  options.defaults.window_bytes = task.job_settings->window_bytes;
  options.defaults.chunk_bytes =
      std::min(options.defaults.chunk_bytes, options.defaults.window_bytes);
  for (const char* name : {"flows_per_link", "streams", "window_bytes"})
    options.pinned.emplace_back(name);
  return options;
}

KnowledgeKey key_of(const SetSummary& set, size_t nodes, const TuningOptions& options) {
  KnowledgeKey key;
  key.tensors_hash = set.tensors_hash;
  key.bytes = std::max<uint64_t>(set.bytes, 1);
  key.tensors = std::max<uint32_t>(set.tensors, 1);
  key.nodes = static_cast<uint32_t>(nodes);
  key.ranks_per_node = std::max<uint32_t>(options.ranks_per_node, 1);
  key.rails = std::max<uint32_t>(options.rails, 1);
  key.cores = std::max<uint32_t>(options.cores, 1);
  return key;
}

Tuner::Options tuner_options(const TuningOptions& options, const KnowledgeKey& key) {
  Tuner::Options tuner;
  tuner.steps_per_trial = kStepsPerTrial;
  tuner.duel_rounds = kDuelRounds;
  tuner.trials = (std::max(options.steps, JobTuning::kStepsMin) - kDuelSteps) / kStepsPerTrial;
  tuner.searchers = options.searchers;
  tuner.seed = key.tensors_hash | 1;  // the same job asks the same questions
  return tuner;
}

uint64_t unix_seconds() {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return static_cast<uint64_t>(std::chrono::duration_cast<std::chrono::seconds>(now).count());
}

}  // namespace

Result<std::unique_ptr<JobTuning>> JobTuning::create(JobLabel job, size_t nodes,
                                                     const TuningOptions& given,
                                                     const TuningTask& task, WorkThread* worker,
                                                     std::function<void()> on_chosen) {
  const TuningOptions options = options_for(given, task);
  const NamedValues defaults = named(options.defaults);
  auto space =
      make_transfer_space({defaults, options.pinned, options.flows_max, options.chunk_bytes_max});
  if (!space) return space.status();
  if (space->coordinates(space->at(0)).empty())
    return Status(StatusCode::InvalidArgument, "every parameter is pinned");
  const Setting usual = space->nearest(defaults, space->at(0));
  const KnowledgeKey key = key_of(task.set, nodes, options);
  std::optional<Knowledge::Found> found;
  if (options.knowledge != nullptr && task.number == 1) found = options.knowledge->find(key);
  Tuner::Known known{space->nearest(named(options.usual), usual), 1};
  if (found) {
    known = {space->nearest(found->entry.values, usual), found->entry.gain,
             found->is_same_job ? KnownFrom::SameJob : KnownFrom::AlikeJob};
  }
  const Setting holding = task.holding ? space->nearest(named(*task.holding), usual) : usual;
  if (holding != usual) known = {holding, 1, KnownFrom::ThisRun};
  auto tuner = Tuner::create(std::move(*space), usual, tuner_options(options, key), known);
  if (!tuner) return tuner.status();
  std::unique_ptr<JobTuning> tuning(new JobTuning(std::move(job), nodes, options, task, key,
                                                  std::move(tuner).value(), worker,
                                                  std::move(on_chosen)));
  tuning->is_known_ = found && found->is_same_job;
  tuning->found_ = std::move(found);
  return tuning;
}

JobTuning::JobTuning(JobLabel job, size_t nodes, const TuningOptions& options,
                     const TuningTask& task, KnowledgeKey key, Tuner tuner, WorkThread* worker,
                     std::function<void()> on_chosen)
    : job_(std::move(job)),
      nodes_(nodes),
      options_(options),
      task_(task),
      key_(key),
      space_(tuner.space()),
      configured_(tuner.defaults()),
      tuned_(tuner),
      tuner_(std::make_shared<Tuner>(std::move(tuner))),
      worker_(worker),
      on_chosen_(std::move(on_chosen)) {}

TransferSettings JobTuning::settings_of(const Setting& setting) const {
  const NamedValues values = space_.values(setting);
  TransferSettings settings;
  settings.flows = static_cast<uint32_t>(values.at("flows_per_link"));
  settings.streams = static_cast<uint32_t>(values.at("streams"));
  settings.unit_bytes = values.at("unit_bytes");
  settings.chunk_bytes = static_cast<uint32_t>(values.at("chunk_bytes"));
  settings.window_bytes = static_cast<uint32_t>(values.at("window_bytes"));
  settings.direct_bytes = values.at("direct_bytes");
  settings.two_hops_bytes = values.at("two_hops_bytes");
  settings.halving_bytes = values.at("halving_bytes");
  settings.is_hierarchical = values.at("hierarchical") == 2;
  return settings;
}

void JobTuning::begin() {
  BRAID_ASSERT(state_ == State::Waiting, "tuning begins once");
  next_turn();
}

std::optional<JobTuning::Change> JobTuning::change() const {
  if (state_ != State::Changing) return std::nullopt;
  Change change;
  change.settings = settings_of(turn_ ? turn_->setting : tuned_.winner);
  change.reports_steps = turn_.has_value();
  // All that will be asked for are opened before the first is measured.
  const auto& flows = space_.parameters().front().values;
  change.flows_open =
      turn_ && turn_->purpose != TrialPurpose::Check && turn_->purpose != TrialPurpose::Duel
          ? static_cast<uint32_t>(flows.back())
          : change.settings.flows;
  return change;
}

// What is to be tried after the turn that was measured; at first, and where nothing could be
// measured, there is none.
JobTuning::Choice JobTuning::choose(Tuner& tuner, const std::optional<Tuner::Turn>& measured,
                                    std::span<const double> seconds) {
  if (measured) {
    const Status taken = tuner.report(measured->setting, seconds);
    BRAID_ASSERT(taken.is_ok(), "the steps are those of the turn");
  }
  std::optional<Tuner::Turn> turn = tuner.next();
  return {std::move(turn), Known(tuner)};
}

void JobTuning::next_turn() {
  state_ = State::Choosing;
  open_steps_.clear();
  compute<Choice>(
      worker_,
      [tuner = tuner_, measured = turn_, seconds = std::exchange(seconds_, {})] {
        return choose(*tuner, measured, seconds);
      },
      lifetime_.guard([this](Choice& choice) { on_choice(choice); }));
}

void JobTuning::on_choice(Choice& choice) {
  tuned_ = std::move(choice.known);
  if (turn_) {
    if (options_.counters != nullptr) ++options_.counters->trials;
    const Trial& last = tuned_.trials.back();
    BRAID_LOG_DEBUG("job '{}': tuning: {} of {} steps: {:.2f} ms", job_.name,
                    purpose_name(last.purpose), last.steps, last.median_seconds * 1e3);
  }
  turn_ = std::move(choice.turn);
  if (turn_ && in_force_ == turn_->setting) {
    state_ = State::Measuring;
    measured_from_ = std::max(last_step_, seen_step_) + 1;
    return;
  }
  state_ = State::Changing;
  on_chosen_();
}

void JobTuning::on_changed(uint64_t from_step) {
  BRAID_ASSERT(state_ == State::Changing, "nothing was to change");
  if (options_.counters != nullptr) ++options_.counters->changes;
  const bool is_first = !in_force_;
  if (first_step_ == 0) first_step_ = from_step;
  if (!turn_) return finish();
  in_force_ = turn_->setting;
  measured_from_ = from_step + (is_first ? kSettleSteps : 0);
  state_ = State::Measuring;
}

void JobTuning::on_step(NodeId from, uint64_t step, uint64_t nanoseconds) {
  seen_step_ = std::max(seen_step_, step);
  if (state_ != State::Measuring || step < measured_from_ || nanoseconds == 0) return;
  if (open_steps_.size() >= kOpenStepsMax && !open_steps_.contains(step)) return;
  OpenStep& open = open_steps_[step];
  open.slowest_ns = std::max(open.slowest_ns, nanoseconds);
  open.nodes.insert(from);
  if (open.nodes.size() < nodes_) return;
  const double seconds = static_cast<double>(open.slowest_ns) / 1e9;
  open_steps_.erase(step);
  last_step_ = step;
  ++steps_measured_;
  if (options_.counters != nullptr) ++options_.counters->steps;
  seconds_.push_back(seconds);
  const bool is_hopeless = seconds > turn_->hopeless_seconds;
  if (seconds_.size() >= turn_->steps || is_hopeless) next_turn();
}

bool JobTuning::on_progress(uint64_t step) {
  if (state_ != State::Measuring ||
      step < std::max(measured_from_, last_step_) + kStepsWithoutTimeMax)
    return false;
  return stop(fmt::format("{} steps have passed that did not reduce all tensors in all ranks",
                          kStepsWithoutTimeMax));
}

bool JobTuning::stop(const std::string& reason) {
  if (state_ != State::Measuring) return false;
  give_up(reason);
  turn_.reset();
  state_ = State::Changing;
  return true;
}

// Nothing: something faster was found.
std::string JobTuning::reason_to_keep() const {
  if (tuned_.winner != configured_) return "";
  if (tuned_.trials.empty()) return "the configured settings are known to be the fastest";
  if (tuned_.trials.back().purpose == TrialPurpose::Duel)
    return "in the duel no setting was clearly faster than the configured ones";
  return "the configured settings are as good as all that were tried";
}

void JobTuning::finish() {
  state_ = State::Over;
  if (is_given_up_) return;
  reason_ = reason_to_keep();
  const NamedValues values = space_.values(tuned_.winner);
  std::string text;
  for (const auto& [name, value] : values) text += fmt::format(" {} {}", name, value);
  BRAID_LOG_INFO(LogFields{.job = job_},
                 "job '{}': tuned in {} trials of {} steps, until step {}, gain {:.2f}:{}{}{}",
                 job_.name, tuned_.trials.size(), steps_measured_, last_step_, tuned_.gain, text,
                 reason_.empty() ? "" : "; ", reason_);
  if (options_.counters != nullptr) options_.counters->gain = tuned_.gain;
  if (options_.knowledge == nullptr) return;
  const auto& trials = tuned_.trials;
  const auto last = std::find_if(trials.rbegin(), trials.rend(), [&](const Trial& trial) {
    return trial.setting == tuned_.winner && trial.median_seconds > 0;
  });
  if (last == trials.rend()) return;  // known, and nothing was measured
  options_.knowledge->add({key_, values, tuned_.gain, last->median_seconds,
                           static_cast<uint32_t>(trials.size()), unix_seconds()});
}

void JobTuning::give_up(const std::string& reason) {
  BRAID_LOG_WARN(LogFields{.job = job_}, "job '{}': tuning ends: {}", job_.name, reason);
  is_given_up_ = true;
  reason_ = reason;
  state_ = State::Over;
}

}  // namespace braid
