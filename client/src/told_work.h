// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include <braid_work.h>
#include <flatbuffers/flatbuffers.h>

#include "base/status.h"
#include "proto/client_generated.h"

namespace braid::client {

// The WorkTold that says so, checked: a daemon ends the job of a trainer that tells it what makes
// no sense. `now_ns`: CLOCK_MONOTONIC.
Status write_told_work(const braid_work* given, uint32_t world_size, uint64_t now_ns,
                       flatbuffers::FlatBufferBuilder& builder,
                       flatbuffers::Offset<proto::WorkTold>& told);

}  // namespace braid::client
