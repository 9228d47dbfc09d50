// SPDX-License-Identifier: Apache-2.0
// The memory that the ranks of a communicator share, found by the unique id.
//
// It is a memfd of the process that made the id, which names that process and its descriptor. So
// nothing is left when processes are killed.
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>

#include "gpu/nccl.h"
#include "signature.h"

namespace fake_nccl {

using braid::NcclResult;
using braid::NcclUniqueId;

constexpr int kMostRanks = 16;  // as many as the driver has devices
constexpr std::size_t kMessageBytes = std::size_t{64} << 10;
constexpr std::size_t kMessages = 4;

/// Messages of one rank to another one, in order: a ring that one kernel at a time writes, and one
/// reads.
struct Mailbox {
  struct Head {
    Signature signature;
    std::uint64_t bytes;
    bool is_first;  // of its operation
  };

  alignas(64) std::atomic<std::uint64_t> written;
  alignas(64) std::atomic<std::uint64_t> taken;
  std::array<Head, kMessages> heads;
  std::array<std::array<std::byte, kMessageBytes>, kMessages> data;
};

/// Collectives and pairs of one group go side by side.
enum class MailLane : std::size_t { kCollectives, kPairs };

/// One rank's view of the shared memory.
class Meeting {
 public:
  static NcclResult make_id(NcclUniqueId& id);

  Meeting() = default;
  ~Meeting();
  Meeting(const Meeting&) = delete;
  Meeting& operator=(const Meeting&) = delete;

  /// Returns when all ranks have come. The device and the version are those of this rank; no two
  /// ranks may have one device, and all have one version.
  NcclResult meet(const NcclUniqueId& id, int ranks, int rank, int device, int version,
                  std::chrono::seconds deadline);

  Mailbox& mailbox(int from, int to, MailLane lane) const;

  /// The first failure of all ranks stays.
  void fail(NcclResult result, const std::string& text);
  NcclResult failure() const;
  std::string failure_text() const;

 private:
  struct Shared;

  NcclResult open(const NcclUniqueId& id);
  NcclResult check_ranks() const;

  Shared* shared_ = nullptr;
  std::size_t bytes_ = 0;
  int ranks_ = 0;
};

}  // namespace fake_nccl
