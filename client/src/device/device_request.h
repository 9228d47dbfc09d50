// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <unordered_map>

#include <braid.h>

#include "base/status.h"
#include "device/device_operation.h"
#include "operation.h"
#include "tensor_table.h"
#include "timeouts.h"

namespace braid::client {

// The first steps of dynamic tensors' next operations.
using NextSteps = std::unordered_map<uint32_t, uint64_t>;

// What both structs ask for, checked but for the device's memory, which CUDA knows. Steps of
// dynamic tensors are those that come next.
Status read_device_request(const braid_operation* operation, const braid_device_buffers* buffers,
                           const TensorTable& tensors, Rank rank, const Timeouts& timeouts,
                           const NextSteps& next_steps, std::optional<DeviceRequest>& request);

}  // namespace braid::client
