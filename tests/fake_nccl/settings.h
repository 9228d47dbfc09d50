// SPDX-License-Identifier: Apache-2.0
// Settings of the fake NCCL: environment variables FAKE_NCCL_…, read at the process's first call. A
// variable that is unknown or has a wrong value ends the process with a message.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "gpu/nccl.h"

namespace fake_nccl {

using braid::NcclResult;

struct CallFailure {
  std::string function;  // ncclAllReduce
  std::uint64_t call;    // from 1, of all threads
  NcclResult result;
};

/// Collectives, sends and receives of the process are numbered from 1, as they are called.
struct Settings {
  std::uint64_t hang = 0;              // HANG=NUMBER: this one never ends, until an abort
  std::optional<CallFailure> failure;  // FAIL=FUNCTION:CALL[:RESULT]: that call fails (with 3)
  std::uint64_t async_error_from = 0;  // ASYNC_ERROR=NUMBER:RESULT: from this one on they never
  NcclResult async_error{};            // end until an abort, and their communicator says RESULT
  bool init_hangs = false;             // INIT_HANG=1: ncclCommInitRank never returns
  std::uint64_t init_seconds = 120;    // INIT_SECONDS=1..3600: then the other ranks are missing
  int version = 22809;                 // VERSION=20900..99999: what ncclGetVersion says
};

const Settings& settings();

}  // namespace fake_nccl
