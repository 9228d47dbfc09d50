// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "job/input_arenas.h"
#include "operation/message_end.h"
#include "proto/ring.h"

namespace braid {

// Reads one end of a message that rank `rank` submits: a Send or a Receive. What it names is
// checked: the other rank is one of the job's, the bytes lie in an arena of the trainer's. Control
// loop only.
Result<MessageEnd> read_message(const proto::SubmitEntry& entry, uint32_t rank, uint32_t world_size,
                                InputArenas& arenas);

}  // namespace braid
