// SPDX-License-Identifier: Apache-2.0
// The functions that the library exports, as the product declares them.
#pragma once

#include <cstdint>
#include <type_traits>

#include "gpu/nccl.h"

namespace fake_nccl {

using braid::NcclComm;
using braid::NcclReduction;
using braid::NcclResult;
using braid::NcclType;
using braid::NcclUniqueId;

#define FAKE_NCCL_DECLARE(Returned, name, ...) extern "C" Returned nccl##name(__VA_ARGS__);
BRAID_NCCL_FUNCTIONS(FAKE_NCCL_DECLARE)
#undef FAKE_NCCL_DECLARE
extern "C" const char* ncclGetLastError(NcclComm comm);
static_assert(std::is_same_v<decltype(&ncclGetLastError), decltype(braid::Nccl::GetLastError)>);

/// How many collectives, sends and receives the process has called.
std::uint64_t operations();

}  // namespace fake_nccl
