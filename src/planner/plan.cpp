// SPDX-License-Identifier: Apache-2.0
#include "planner/plan.h"

namespace braid {

Status check_plan(const Plan& plan, size_t tensors) {
  size_t covered = 0;
  for (size_t i = 0; i < plan.groups.size(); ++i) {
    const Plan::Group& group = plan.groups[i];
    if (group.begin != covered) {
      return make_status(StatusCode::InvalidArgument, "group {} begins at tensor {} instead of {}",
                         i, group.begin, covered);
    }
    if (group.end <= group.begin) {
      return make_status(StatusCode::InvalidArgument, "group {} is empty: [{}, {})", i, group.begin,
                         group.end);
    }
    if (group.pieces == 0) {
      return make_status(StatusCode::InvalidArgument, "group {} is sent in no pieces", i);
    }
    covered = group.end;
  }
  if (covered != tensors) {
    return make_status(StatusCode::InvalidArgument, "the groups cover {} tensors of {}", covered,
                       tensors);
  }
  return Status::ok();
}

}  // namespace braid
