// SPDX-License-Identifier: Apache-2.0
// What the ranks of a communicator must agree on.
#pragma once

#include <cstdint>
#include <string>

#include "values.h"

namespace fake_nccl {

enum class Kind : std::int32_t {
  kAllReduce,
  kReduceScatter,
  kAllGather,
  kReduce,
  kBroadcast,
  kPair,  // ncclSend of one rank, ncclRecv of the other
};

/// Lies in memory that processes share.
struct Signature {
  Kind kind;
  NcclType type;
  NcclReduction reduction;  // Sum where nothing is added
  std::int32_t root;        // -1: there is none
  std::uint64_t count;

  bool operator==(const Signature&) const = default;
};

inline bool reduces(Kind kind) {
  return kind == Kind::kAllReduce || kind == Kind::kReduceScatter || kind == Kind::kReduce;
}

/// "ncclReduce (4 float32, sum, root 1)"
std::string to_text(const Signature& signature);

}  // namespace fake_nccl
