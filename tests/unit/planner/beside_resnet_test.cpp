// SPDX-License-Identifier: Apache-2.0
// ResNet-50's gradients beside its 108 Kronecker factors, each planned alone and beside the other.
// The table of docs/planning.md was made with the same numbers.
#include <algorithm>
#include <cstdio>
#include <fstream>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "planner/beside_plan.h"
#include "planner/occupying_cost.h"
#include "tests/unit/planner/shared_data.h"

namespace braid {
namespace {

constexpr uint32_t kStreams = 4;

// Both on one time axis, from the begin of the forward pass on.
struct Resnet {
  Workload factors;    // A in the forward pass, G in the backward pass
  Workload gradients;  // in the backward pass

  Resnet(const std::string& path, double forward_seconds, double backward_seconds) {
    const auto sizes = nlohmann::json::parse(std::ifstream(path));
    const auto triangle = [](uint64_t d) { return (d * (d + 1) / 2 + 1) * sizeof(float); };
    const std::vector<uint64_t> a = sizes["A"], g = sizes["G"];
    const auto count = static_cast<double>(a.size());
    for (size_t i = 0; i < a.size(); ++i) {
      const double ready = forward_seconds * static_cast<double>(i + 1) / count;
      factors.tensors.push_back({ready, triangle(a[i])});
    }
    for (size_t i = 0; i < g.size(); ++i) {
      const double ready = forward_seconds + backward_seconds * static_cast<double>(i + 1) / count;
      factors.tensors.push_back({ready, triangle(g[g.size() - 1 - i])});
    }
    const auto trace = load_trace(BRAID_PROJECT_FOLDER "/traces/resnet50_b4.json");
    gradients = workload_of(trace.value());
    gradients.forward_seconds = 0;
    const double pace = backward_seconds / gradients.backward_seconds();
    for (Workload::Tensor& tensor : gradients.tensors)
      tensor.ready_seconds = forward_seconds + tensor.ready_seconds * pace;
  }
};

std::vector<Workload::Unit> units_of(const Workload& workload, const Plan& plan) {
  std::vector<Workload::Unit> units;
  for (const Plan::Group& group : plan.groups) {
    Workload::Unit unit{workload.tensors[group.end - 1].ready_seconds, 0};
    for (uint32_t i = group.begin; i < group.end; ++i) unit.bytes += workload.tensors[i].bytes;
    units.push_back(unit);
  }
  return units;
}

struct Steps {
  double alone_seconds = 0;   // each set planned as if it were alone
  double beside_seconds = 0;  // factors planned beside these gradients, and gradients beside those
};

Steps steps_of(const Resnet& resnet, double startup_seconds, double seconds_per_byte) {
  const FittedCost fitted =
      FittedCost::create({{1, 1 << 30, {startup_seconds, seconds_per_byte}}}, {}).value();
  const OccupyingCost cost(fitted);
  const PlannerOptions options = daemon_planner_options(kStreams);
  const Planner& planner = **find_planner("streams");
  const auto beside = [&](const Workload& workload, const Workload& other, const Plan& plan) {
    const BesideSteps always[] = {{1, units_of(other, plan)}};
    return plan_beside(planner, workload, always, cost, options, {.streams = kStreams});
  };
  const Plan gradients = planner.plan(resnet.gradients, cost, options);
  const Plan factors = planner.plan(resnet.factors, cost, options);
  const BesideSteps always[] = {{1, units_of(resnet.factors, factors)}};
  Steps steps;
  steps.alone_seconds =
      mean_iteration_seconds(resnet.gradients, always, gradients, cost, {.streams = kStreams});
  const BesidePlan first = beside(resnet.factors, resnet.gradients, gradients);
  steps.beside_seconds = beside(resnet.gradients, resnet.factors, first.plan).iteration_seconds;
  return steps;
}

TEST(BesideResnetTest, GainsWhereStartupsAreLong) {
  const std::string path = shared_data("kfac/resnet50_kfac.json");
  BRAID_SKIP_WITHOUT(path);
  double best = 1;
  for (const double backward : {0.06, 0.2}) {
    const Resnet resnet(path, backward / 2, backward);
    for (const double startup : {0.3e-3, 1e-3, 3e-3, 10e-3}) {
      for (const double gigabits : {10, 25, 100}) {
        const Steps steps = steps_of(resnet, startup, 1.75 * 8e-9 / gigabits);
        EXPECT_LE(steps.beside_seconds, steps.alone_seconds);
        const double ratio = steps.beside_seconds / steps.alone_seconds;
        std::printf("| %.0f ms | %.1f ms | %g Gbit/s | %.1f ms | %.1f ms | %.3f |\n",
                    backward * 1500, startup * 1e3, gigabits, steps.alone_seconds * 1e3,
                    steps.beside_seconds * 1e3, ratio);
        best = std::min(best, ratio);
      }
    }
  }
  EXPECT_LT(best, 0.9);
}

}  // namespace
}  // namespace braid
