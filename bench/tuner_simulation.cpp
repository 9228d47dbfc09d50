// SPDX-License-Identifier: Apache-2.0
// How good the tuner's searchers are, on made-up networks: `bench/tune --simulate`, which says what
// is printed. The tuner is asked as the daemon asks it.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "bench/tuner_surfaces.h"
#include "tune/transfer_space.h"
#include "tune/tuner.h"

namespace braid {
namespace {

constexpr uint64_t kStepsBudget = 72;  // tune.steps
constexpr uint64_t kUsualFlows = 8;

enum class Form { Network, Flat, Bowl };

struct Scenario {
  const char* name;
  ModelNetwork network;
  Form form = Form::Network;
  bool begins_with_usual = false;  // what braid comes configured with; else bad settings
};

// What braid comes configured with, and settings as bad as can be.
NamedValues usual_values() {
  return {{"flows_per_link", kUsualFlows},
          {"streams", 4},
          {"unit_bytes", 8 << 20},
          {"chunk_bytes", 128 << 10},
          {"window_bytes", 512 << 10},
          {"direct_bytes", 32 << 10},
          {"two_hops_bytes", 0},
          {"halving_bytes", 256 << 10},
          {"hierarchical", 0}};
}

NamedValues configured_values(const Scenario& scenario) {
  NamedValues values = usual_values();
  if (scenario.begins_with_usual) return values;
  values["flows_per_link"] = 1;
  values["streams"] = 1;
  values["chunk_bytes"] = 64 << 10;
  return values;
}

std::vector<Scenario> scenarios() {
  ModelNetwork cloud;  // as emulated in docs/tuning.md
  cloud.bytes = 50e6;
  cloud.nic = 0.25e9;
  cloud.flow_cap = 0.0625e9;
  cloud.cpu_per_chunk = 60e-6;
  cloud.cpu_per_flow = 1e-3;
  cloud.startup = 1e-3;
  ModelNetwork processors;
  processors.cpu_per_chunk = 20e-6;
  processors.cpu_per_flow = 2e-3;
  processors.startup = 1e-3;
  return {{"capped flows, from bad", cloud},
          {"capped flows, from usual", cloud, Form::Network, true},
          {"fast, from bad", {}},
          {"fast, from usual", {}, Form::Network, true},
          {"processors, from bad", processors},
          {"processors, from usual", processors, Form::Network, true},
          {"flat", {}, Form::Flat, true},
          {"usual is best", {}, Form::Bowl, true}};
}

Surface surface_of(const Scenario& scenario, const SearchSpace& space) {
  switch (scenario.form) {
    case Form::Network:
      return network_surface(scenario.network);
    case Form::Flat:
      return flat_surface();
    case Form::Bowl:
      return bowl_surface(space, space.nearest(usual_values(), space.at(0)), 1.02);
  }
  std::abort();
}

struct Outcome {
  double to_best = 1;        // its true seconds ÷ the best setting's
  double to_configured = 1;  // ÷ those of what was configured
  uint64_t steps = 0;        // measured
  double cost = 0;           // of them all, in steps with what is configured, those steps left out
};

Outcome tune_once(const SearchSpace& space, const Scenario& scenario, double noise, double best,
                  uint64_t seed, const Tuner::Options& options) {
  const Surface surface = surface_of(scenario, space);
  const Setting configured = space.nearest(configured_values(scenario), space.at(0));
  FakeJob job(space, surface, {.noise = noise}, 1000 + seed);
  const Tuner::Known usual{space.nearest(usual_values(), configured), 1};
  auto tuner = Tuner::create(space, configured, options, usual);
  BRAID_ASSERT(tuner.is_ok(), "options of the right form");
  double seconds_of_all = 0;
  while (const auto turn = tuner->next()) {
    std::vector<double> seconds;
    while (seconds.size() < turn->steps) {
      seconds.push_back(job.step(turn->setting));
      seconds_of_all += job.true_seconds(turn->setting);
      if (seconds.back() > turn->hopeless_seconds) break;
    }
    BRAID_ASSERT(tuner->report(turn->setting, seconds).is_ok(), "the turn that was asked for");
  }
  const double own = job.true_seconds(configured);
  const double end = job.true_seconds(tuner->winner());
  const auto steps = static_cast<double>(job.steps());
  return {end / best, end / own, job.steps(), seconds_of_all / own - steps};
}

double quantile(std::vector<Outcome> all, double Outcome::*value, double share) {
  std::sort(all.begin(), all.end(),
            [value](const Outcome& a, const Outcome& b) { return a.*value < b.*value; });
  return all[static_cast<size_t>(share * static_cast<double>(all.size() - 1))].*value;
}

void print(const Scenario& scenario, double noise, const char* searcher,
           const std::vector<Outcome>& all) {
  double to_best = 0;
  double steps = 0;
  double cost = 0;
  for (const Outcome& one : all) {
    to_best += one.to_best;
    steps += static_cast<double>(one.steps);
    cost += one.cost;
  }
  const auto count = static_cast<double>(all.size());
  fmt::print(
      "{:<26} {:>4.0f} %  {:<9}  {:>6.3f} {:>6.3f} {:>6.3f}  {:>6.3f} {:>6.3f} {:>6.3f}  "
      "{:>5.1f} {:>6.1f}\n",
      scenario.name, noise * 100, searcher, to_best / count, quantile(all, &Outcome::to_best, 0.5),
      quantile(all, &Outcome::to_best, 0.9), quantile(all, &Outcome::to_configured, 0.5),
      quantile(all, &Outcome::to_configured, 0.99), quantile(all, &Outcome::to_configured, 1),
      steps / count, cost / count);
}

void simulate(uint64_t seeds) {
  fmt::print("{:<26} {:>6}  {:<9}  {:>20}  {:>20}  {:>5} {:>6}\n", "", "", "", "end ÷ best",
             "end ÷ configured", "", "");
  fmt::print("{:<26} {:>6}  {:<9}  {:>6} {:>6} {:>6}  {:>6} {:>6} {:>6}  {:>5} {:>6}\n", "NETWORK",
             "NOISE", "SEARCHER", "mean", "50 %", "90 %", "50 %", "99 %", "most", "STEPS", "COST");
  for (const Scenario& scenario : scenarios()) {
    const auto space =
        make_transfer_space({configured_values(scenario), {}, /*flows_max=*/16, 512 << 10});
    BRAID_ASSERT(space.is_ok(), "a space of the right form");
    const Surface surface = surface_of(scenario, *space);
    const double best = FakeJob(*space, surface, {}, 0).best_seconds();
    for (const double noise : {0.05, 0.10, 0.15}) {
      for (const char* searcher : {"grid", "portfolio"}) {
        Tuner::Options options;
        options.trials = (kStepsBudget - 4 * options.duel_rounds) / options.steps_per_trial;
        if (std::string(searcher) == "grid") options.searchers = {"grid"};
        std::vector<Outcome> all;
        for (uint64_t seed = 1; seed <= seeds; ++seed) {
          options.seed = seed;
          all.push_back(tune_once(*space, scenario, noise, best, seed, options));
        }
        print(scenario, noise, searcher, all);
      }
    }
  }
}

}  // namespace
}  // namespace braid

int main(int argc, char** argv) {
  const uint64_t seeds = argc == 2 ? std::strtoull(argv[1], nullptr, 10) : 0;
  if (seeds == 0) {
    fmt::print(stderr, "tuner_simulation SEEDS: how many runs of each kind; 200, for example\n");
    return 2;
  }
  braid::simulate(seeds);
  return 0;
}
