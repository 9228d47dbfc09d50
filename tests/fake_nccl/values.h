// SPDX-License-Identifier: Apache-2.0
// NCCL's types and what reductions make of their values.
#pragma once

#include <cstddef>
#include <vector>

#include "gpu/nccl.h"

namespace fake_nccl {

using braid::NcclReduction;
using braid::NcclType;

/// 0: the library does not have this type.
std::size_t bytes_of(NcclType type);
const char* name_of(NcclType type);
/// Null: the library does not have this reduction.
const char* name_of(NcclReduction reduction);

/// result[i] = the reduction of part[i] of all parts, added from the first to the last. 16-bit
/// floats are added as float32 and rounded once. The result may be one of the parts.
void reduce(const std::vector<const std::byte*>& parts, std::byte* result, std::size_t count,
            NcclType type, NcclReduction reduction);

}  // namespace fake_nccl
