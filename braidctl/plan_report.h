// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "planner/cost_model.h"
#include "planner/plan.h"
#include "planner/simulator.h"
#include "planner/trace.h"
#include "planner/workload.h"

namespace braid {

// One plan of one trace and how its step goes: what `braidctl plan` prints.
struct RenderedPlan {
  // `cost` must outlive the report. `plan` covers the trace's tensors.
  static RenderedPlan make(Trace trace, Plan plan, const CostModel& cost, std::string planner,
                           uint32_t streams);

  const Trace::Tensor& tensor(uint32_t place) const {  // as plans count: the last layer is 0
    return trace.tensors[trace.tensors.size() - 1 - place];
  }
  uint64_t group_bytes(const Plan::Group& group) const;
  uint64_t unit_bytes(const Timeline::Unit& unit) const;
  std::vector<uint64_t> message_bytes() const;  // of each unit

  Trace trace;
  Workload workload;
  Plan plan;
  Timeline timeline;
  const CostModel* cost = nullptr;
  std::string planner;
  uint32_t streams = 1;
  std::vector<std::string> warnings;
};

std::string plan_table(const RenderedPlan& report);
// {"planner", "groups": [[name, …], …], …}, with a newline: docs/planning.md. Groups in sending
// order, names as backward makes them.
std::string plan_json(const RenderedPlan& report);
nlohmann::ordered_json json_of_plan(const RenderedPlan& report);

}  // namespace braid
