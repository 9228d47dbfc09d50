// SPDX-License-Identifier: Apache-2.0
#include "explain/explained_job.h"

#include <algorithm>

#include <gtest/gtest.h>

namespace braid::testing {
namespace {

NodeFacts quiet_node(size_t index, size_t ranks, size_t nodes) {
  NodeFacts node;
  node.node = std::string(1, static_cast<char>('a' + index));
  node.world_size = static_cast<uint32_t>(ranks * nodes);
  for (size_t i = 0; i < ranks; ++i) node.ranks.push_back(static_cast<uint32_t>(index * ranks + i));
  node.planned_bytes = 1'000'000;
  node.rails = {"eth0"};
  for (uint64_t number = 0; number < ExplainedJob::kSteps; ++number) {
    NodeFacts::Step step;
    step.step = number;
    step.step_ns = 100 * kMs;
    step.before_ns.assign(ranks, 30 * kMs);
    step.backward_ns.assign(ranks, 60 * kMs);
    step.wait_ns.assign(ranks, kMs / 2);
    node.steps.push_back(std::move(step));
  }
  return node;
}

}  // namespace

ExplainedJob::ExplainedJob(size_t nodes, size_t ranks_per_node) {
  before_.job = "train";
  for (size_t i = 0; i < nodes; ++i) before_.nodes.push_back(quiet_node(i, ranks_per_node, nodes));
  after_ = before_;
  for (NodeFacts& node : after_.nodes) node.at_ns += 2000 * kMs;
}

void ExplainedJob::expose_ms(uint64_t ms) {
  for (NodeFacts& node : after_.nodes) {
    for (NodeFacts::Step& step : node.steps) {
      for (uint64_t& wait : step.wait_ns) wait += ms * kMs;
      step.step_ns += ms * kMs;
    }
  }
}

void ExplainedJob::delay_ms(size_t index, size_t place, uint64_t ms, bool is_in_backward) {
  for (size_t i = 0; i < after_.nodes.size(); ++i) {
    for (NodeFacts::Step& step : after_.nodes[i].steps) {
      step.step_ns += ms * kMs;
      for (size_t rank = 0; rank < step.wait_ns.size(); ++rank) {
        const bool is_late = i == index && rank == place;
        if (!is_late) step.wait_ns[rank] += ms * kMs;
        if (is_late) (is_in_backward ? step.backward_ns : step.before_ns)[rank] += ms * kMs;
      }
    }
  }
}

void ExplainedJob::replace_steps_by_operations(uint64_t count) {
  for (size_t i = 0; i < after_.nodes.size(); ++i) {
    change_both(i, [&](NodeFacts& node) {
      node.planned_bytes = 0;
      node.steps.clear();
      for (uint64_t ago = 0; ago < count; ++ago) {
        node.operations.push_back({"stream", 1000 - ago, "all-reduce", 10 * ago * kMs,
                                   std::vector<uint64_t>(node.ranks.size(), kMs)});
      }
    });
  }
}

void ExplainedJob::delay_operation_ms(size_t index, size_t place, size_t number, uint64_t ms) {
  for (size_t i = 0; i < after_.nodes.size(); ++i) {
    NodeFacts& node = after_.nodes[i];
    for (size_t rank = 0; rank < node.ranks.size(); ++rank) {
      if (i != index || rank != place) node.operations[number].wait_ns[rank] += ms * kMs;
    }
    // What ended before ended so much earlier.
    for (size_t earlier = number + 1; earlier < node.operations.size(); ++earlier)
      node.operations[earlier].ended_ago_ns += ms * kMs;
  }
}

void ExplainedJob::add_flows(size_t count, double bytes_per_second, const std::string& rail) {
  for (size_t i = 0; i < after_.nodes.size(); ++i) {
    for (uint32_t flow = 0; flow < count; ++flow) {
      NodeFacts::Flow added;
      added.peer = after_.nodes[(i + 1) % after_.nodes.size()].node;
      added.flow = flow;
      added.rail = rail;
      added.state = "open";
      added.bytes_per_second = bytes_per_second;
      change_both(i, [&added](NodeFacts& node) { node.flows.push_back(added); });
    }
  }
}

std::vector<Cause> ExplainedJob::causes() const {
  const auto explanation = explain();
  EXPECT_TRUE(explanation) << explanation.status().message();
  std::vector<Cause> causes;
  if (!explanation) return causes;
  for (const Finding& finding : explanation->findings) causes.push_back(finding.cause);
  return causes;
}

Finding ExplainedJob::find(Cause cause) const {
  const auto explanation = explain();
  EXPECT_TRUE(explanation) << explanation.status().message();
  Finding found;
  if (!explanation) return found;
  const auto count = std::ranges::count(explanation->findings, cause, &Finding::cause);
  EXPECT_EQ(count, 1) << to_string(cause);
  for (const Finding& finding : explanation->findings) {
    if (finding.cause == cause) found = finding;
  }
  return found;
}

}  // namespace braid::testing
