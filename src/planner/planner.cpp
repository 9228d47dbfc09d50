// SPDX-License-Identifier: Apache-2.0
#include "planner/planner.h"

#include <string>

#include "planner/all_planners.h"

namespace braid {

std::span<const Planner* const> planners() {
  static const Planner* const all[] = {
      &wfbp_planner(), &single_planner(), &mgwfbp_planner(), &exact_planner(),   &streams_planner(),
      &asc_planner(),  &dear_planner(),   &ddp_planner(),    &horovod_planner(),
  };
  return all;
}

Result<const Planner*> find_planner(std::string_view name) {
  std::string known;
  for (const Planner* planner : planners()) {
    if (planner->name() == name) return planner;
    if (!known.empty()) known += ", ";
    known += planner->name();
  }
  return make_status(StatusCode::NotFound, "no planner is named '{}'; there are {}", name, known);
}

}  // namespace braid
