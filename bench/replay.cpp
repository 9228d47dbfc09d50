// SPDX-License-Identifier: Apache-2.0
#include "bench/replay.h"

#include <algorithm>
#include <cstdio>

#include <fmt/format.h>

#include "base/write_file.h"
#include "bench/cost_sweep.h"
#include "bench/environment.h"
#include "bench/player.h"
#include "bench/replay_report.h"
#include "client/status_client.h"
#include "planner/live_plan.h"
#include "planner/occupying_cost.h"
#include "planner/planner.h"
#include "planner/simulator.h"

namespace braid::bench {
namespace {

constexpr uint32_t kPlansTimeoutMs = 10'000;
constexpr uint64_t kReplaySlackBytes = 1 << 20;
constexpr uint32_t kWarmupSteps = 2;

class ReplayBench {
 public:
  ReplayBench(const ReplayOptions& options, const Environment& environment, const Trace& trace,
              Trainer& trainer, Ranks& ranks, Player& player)
      : options_(options),
        environment_(environment),
        trace_(trace),
        workload_(workload_of(trace)),
        trainer_(trainer),
        ranks_(ranks),
        player_(player) {}

  Status run() {
    BRAID_RETURN_IF_ERROR(prepare_cost());
    BRAID_RETURN_IF_ERROR(prepare_schedules());
    BRAID_RETURN_IF_ERROR(warm_up());
    BRAID_RETURN_IF_ERROR(measure());
    if (sweep_) {
      // Again: what has changed meanwhile counts half.
      BRAID_RETURN_IF_ERROR(sweep_->run(measurements_));
      BRAID_RETURN_IF_ERROR(fit());
    }
    return environment_.rank == 0 ? report() : Status::ok();
  }

 private:
  struct Contender {
    ReplayResult result;
    Schedule schedule;
    bool is_live() const { return result.planner == kLivePlanner; }
  };

  // What plain all-reduces cost says nothing of encoded ones.
  Status prepare_cost() {
    if (!options_.codec.empty()) return Status::ok();
    if (!options_.cost_path.empty()) {
      auto loaded = load_cost(options_.cost_path);
      if (!loaded) return loaded.status();
      cost_ = std::move(loaded).value();
      return Status::ok();
    }
    const Gradients& gradients = player_.gradients();
    auto sweep = CostSweep::create(trainer_, ranks_, gradients.tensors().front().dtype,
                                   player_.memory(), gradients.bytes());
    if (!sweep) return sweep.status();
    sweep_ = std::move(sweep).value();
    BRAID_RETURN_IF_ERROR(sweep_->run(measurements_));
    return fit();
  }

  Status fit() {
    auto fitted = fit_cost(measurements_);
    if (!fitted) return fitted.status().with_context("the sweep over sizes");
    cost_ = std::move(fitted).value();
    return Status::ok();
  }

  // A tensor for each group of its plan; of a live one each gradient, for the daemons to merge.
  Status register_groups(Contender& one) {
    std::vector<Trainer::Tensor> tensors;
    const auto& gradients = player_.gradients().tensors();
    for (const Plan::Group& group : one.schedule.plan.groups) {
      const Gradients::Tensor& first = gradients[group.begin];
      const std::string name =
          one.is_live() ? first.name
                        : fmt::format("bench.replay/{}/{}", contenders_.size(), first.name);
      uint64_t count = 0;
      for (uint32_t i = group.begin; i < group.end; ++i) count += gradients[i].count;
      tensors.push_back({name, static_cast<uint32_t>(first.dtype), count, /*is_dynamic=*/false,
                         one.is_live(), options_.codec});
    }
    auto registered = trainer_.register_tensors(tensors);
    if (!registered) return registered.status();
    one.schedule.handles = std::move(registered).value();
    return Status::ok();
  }

  Status prepare_schedules() {
    for (const std::string& name : options_.planners) {
      Contender& one = contenders_.emplace_back();
      one.result.planner = name;
      one.result.streams = options_.streams;
      BRAID_RETURN_IF_ERROR(make_plan(one));
      BRAID_RETURN_IF_ERROR(register_groups(one));
    }
    return Status::ok();
  }

  // Rank 0's plan holds on all ranks: with other measurements or an other processor the last bit,
  // and so the plan, could be another.
  Status make_plan(Contender& one) {
    const size_t tensors = workload_.tensors.size();
    std::vector<uint8_t> begins(tensors, 1);  // live: each by itself
    if (!one.is_live() && environment_.rank == 0) {
      const auto planner = find_planner(one.result.planner);
      if (!planner) return planner.status();
      const Plan plan =
          (*planner)->plan(workload_, *cost_, daemon_planner_options(options_.streams));
      begins = encode(executable(plan, player_.gradients()), tensors);
    }
    BRAID_RETURN_IF_ERROR(ranks_.broadcast(begins.data(), begins.size()));
    one.schedule.plan = decode(begins);
    return Status::ok();
  }

  Status play(const Contender& one, double& seconds) {
    uint64_t& step = one.is_live() ? live_step_ : step_;
    return player_.play(one.schedule, step++, seconds);
  }

  Status warm_up() {
    for (Contender& one : contenders_) {
      double seconds = 0;
      const uint32_t steps = one.is_live() ? options_.steps : kWarmupSteps;
      for (uint32_t i = 0; i < steps; ++i) BRAID_RETURN_IF_ERROR(play(one, seconds));
    }
    return Status::ok();
  }

  Status measure() {
    for (uint32_t done = 0; done < options_.steps; done += kTurnSteps) {
      const uint32_t steps = std::min(kTurnSteps, options_.steps - done);
      for (Contender& one : contenders_) {
        for (uint32_t i = 0; i < steps; ++i) {
          const uint64_t before_ns = player_.began_ns();
          BRAID_RETURN_IF_ERROR(play(one, one.result.seconds.emplace_back()));
          if (i == 0) continue;  // another one's step was before it
          one.result.iterations.push_back(static_cast<double>(player_.began_ns() - before_ns) /
                                          1e9);
        }
      }
    }
    return Status::ok();
  }

  // What the daemons have made of the tensors.
  Status ask_for_plan(Contender& one) const {
    const auto text = query_plans(daemon_socket_path(options_.socket_path), environment_.job_name,
                                  kPlansTimeoutMs);
    if (!text) return text.status();
    const auto jobs = parse_live_plans(text->json);
    if (!jobs) return jobs.status();
    if (jobs->size() != 1 || jobs->front().sets.size() != 1) {
      return make_status(StatusCode::Internal, "braidd does not know the plans of the job '{}'",
                         environment_.job_name);
    }
    const LiveSet& set = jobs->front().sets.front();
    auto plan = plan_of_groups(set.groups, trace_);
    if (!plan) return plan.status();
    one.schedule.plan = std::move(plan).value();
    one.result.plan = set.plan;
    one.result.is_settled = set.from_step <= options_.steps;  // so many were for warming up
    return Status::ok();
  }

  Status report() {
    std::vector<ReplayResult> results;
    for (Contender& one : contenders_) {
      if (one.is_live()) BRAID_RETURN_IF_ERROR(ask_for_plan(one));
      one.result.groups = one.schedule.plan.groups.size();
      if (cost_) {
        SimulatorOptions simulator;
        simulator.streams = options_.streams;
        one.result.predicted_seconds =
            simulate(workload_, one.schedule.plan, *cost_, simulator).iteration_seconds;
      }
      results.push_back(std::move(one.result));
    }
    if (options_.as_json) {
      for (const ReplayResult& result : results)
        std::printf("%s\n", to_json(result, results.front(), results.size() > 1).c_str());
    } else {
      std::fputs(replay_table(results).c_str(), stdout);
    }
    if (options_.save_cost_path.empty()) return Status::ok();
    return write_file(options_.save_cost_path, to_json(*cost_) + '\n');
  }

  const ReplayOptions& options_;
  const Environment& environment_;
  const Trace& trace_;
  const Workload workload_;
  Trainer& trainer_;
  Ranks& ranks_;
  Player& player_;
  std::optional<CostSweep> sweep_;
  std::vector<CostMeasurement> measurements_;
  std::optional<FittedCost> cost_;
  std::vector<Contender> contenders_;
  uint64_t step_ = 0;  // the next one of all planners but live
  uint64_t live_step_ = 0;
};

Result<Trace> load(const ReplayOptions& options) {
  auto trace = load_trace(options.trace_path);
  if (!trace) return trace.status();
  for (Trace::Tensor& tensor : trace->tensors) tensor.backward_seconds *= options.time_scale;
  trace->forward_seconds =
      options.forward_seconds.value_or(trace->forward_seconds * options.time_scale);
  return trace;
}

}  // namespace

Status run_replay(const ReplayOptions& options) {
  const auto trace = load(options);
  if (!trace) return trace.status();
  const auto environment = read_environment();
  if (!environment) return environment.status();
  auto gradients = options.codec.empty()
                       ? Gradients::create(*trace, environment->rank, environment->world_size)
                       : Gradients::create_normal(*trace, environment->rank);
  if (!gradients) return gradients.status();
  const uint64_t arena_bytes = gradients->bytes() + kReplaySlackBytes;
  const auto trainer = Trainer::open(*environment, daemon_socket_path(options.socket_path),
                                     options.timeout_ms, arena_bytes);
  if (!trainer) return trainer.status();
  auto ranks = Ranks::create(**trainer);
  if (!ranks) return ranks.status();
  auto player = Player::create(**trainer, *ranks, workload_of(*trace), std::move(gradients).value(),
                               environment->rank);
  if (!player) return player.status();
  return ReplayBench(options, *environment, *trace, **trainer, *ranks, *player).run();
}

}  // namespace braid::bench
