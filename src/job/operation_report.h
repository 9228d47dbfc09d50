// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "engine/operation.h"
#include "messages/control_messages.h"
#include "net/transport.h"

namespace braid {

class Job;

// What this node answers when the job's coordinator asks why an operation is overdue: which ranks
// have not submitted it and what they did last, or else what is wrong with the links. The job has
// begun.
ControlBuffer report_operation(const OperationKey& key, const Job& job, const Transport& transport);

}  // namespace braid
