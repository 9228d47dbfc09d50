// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "engine/operation.h"
#include "engine/transfer_settings.h"

namespace braid {

// Fills in how the operation is cut and which algorithm it takes, from its size and its ring.
// Whatever the settings say, it does not take what the ring has no links for, nor what its fixed
// owners do not allow. `settings`: nullptr, as the engines and the ring say. `signature_hash`: of
// what all ranks must agree on.
void choose_algorithm(Operation& operation, const TransferSettings* settings,
                      uint64_t signature_hash);

}  // namespace braid
