// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "planner/planner.h"

// The one instance of each planner, for the registry and for planners that build on others.
namespace braid {

const Planner& wfbp_planner();
const Planner& single_planner();
const Planner& mgwfbp_planner();
const Planner& exact_planner();
const Planner& streams_planner();
const Planner& asc_planner();
const Planner& dear_planner();
const Planner& ddp_planner();
const Planner& horovod_planner();

}  // namespace braid
