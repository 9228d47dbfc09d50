// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/status.h"
#include "operation/placed_work.h"
#include "proto/client_generated.h"

namespace braid {

// Limits of one WorkTold, which libbraid keeps, too.
inline constexpr size_t kWorkNameBytesMax = 64;
inline constexpr size_t kWorkItemsMax = 1024;
inline constexpr size_t kWorkItemNameBytesMax = 255;
inline constexpr size_t kWorkSpansMax = 4096;
inline constexpr double kWorkSecondsMax = 1e6;

// What the trainer of `rank` tells, checked: nothing that it names is missing, numbers are finite,
// and times are the daemon's. `now_ns`: of the daemon's clock, as the message came. InvalidArgument
// says what is wrong.
Result<ToldWork> read_told_work(const proto::WorkTold& told, uint32_t rank, uint32_t world_size,
                                uint64_t now_ns);

}  // namespace braid
