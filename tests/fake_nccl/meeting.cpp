// SPDX-License-Identifier: Apache-2.0
#include "meeting.h"

#include <algorithm>
#include <cstring>
#include <random>
#include <thread>

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "calls.h"

namespace fake_nccl {
namespace {

/// What a unique id says.
struct IdParts {
  std::uint64_t magic, secret;
  pid_t process;
  int file;
};
constexpr std::uint64_t kMagic = 0x6C63636E656B6166;  // "fakenccl"
static_assert(sizeof(IdParts) <= sizeof(NcclUniqueId));

}  // namespace

// A new memfd is all zeros, which is how this begins.
struct Meeting::Shared {
  struct RankPlace {
    std::atomic<bool> is_taken, has_come;
    int device, version;
  };

  std::uint64_t secret;
  std::atomic<int> ranks;  // 0: no rank has come
  std::atomic<bool> is_file_closed;
  std::array<RankPlace, kMostRanks> places;
  std::atomic<int> failing, failure;  // failing: somebody writes the text
  std::array<char, 1024> failure_text;
};

static_assert(std::atomic<std::uint64_t>::is_always_lock_free);

namespace {

constexpr std::size_t kMailboxesAt = 64 * 1024;  // bytes

std::size_t bytes_for(int ranks) {
  const auto size = static_cast<std::size_t>(ranks);
  return kMailboxesAt + size * size * 2 * sizeof(Mailbox);
}

}  // namespace

NcclResult Meeting::make_id(NcclUniqueId& id) {
  static_assert(sizeof(Shared) <= kMailboxesAt);
  // Pages that nobody writes take no memory, so it has room for any number of ranks.
  const int file = memfd_create("fake_nccl", MFD_CLOEXEC);
  if (file < 0 || ftruncate(file, bytes_for(kMostRanks)) != 0) {
    if (file >= 0) close(file);
    return refuse(NcclResult::SystemError, "there is no shared memory for a communicator");
  }
  std::random_device random;
  const IdParts parts{kMagic, (std::uint64_t{random()} << 32) | random(), getpid(), file};
  if (pwrite(file, &parts.secret, sizeof parts.secret, offsetof(Shared, secret)) !=
      sizeof parts.secret) {
    close(file);
    return refuse(NcclResult::SystemError, "the shared memory of a communicator is not writable");
  }
  std::memset(&id, 0, sizeof id);
  std::memcpy(&id, &parts, sizeof parts);
  return NcclResult::Success;
}

Meeting::~Meeting() {
  if (shared_ != nullptr) munmap(shared_, bytes_);
}

NcclResult Meeting::open(const NcclUniqueId& id) {
  IdParts parts;
  std::memcpy(&parts, &id, sizeof parts);
  if (parts.magic != kMagic) {
    return refuse(NcclResult::InvalidArgument, "the unique id is not one of ncclGetUniqueId");
  }
  const std::string path =
      "/proc/" + std::to_string(parts.process) + "/fd/" + std::to_string(parts.file);
  const int file = ::open(path.c_str(), O_RDWR | O_CLOEXEC);
  bytes_ = bytes_for(ranks_);
  void* memory = MAP_FAILED;
  if (file >= 0) {
    memory = mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    close(file);
  }
  if (memory == MAP_FAILED) {
    return refuse(NcclResult::SystemError, "the process that made the unique id, " +
                                               std::to_string(parts.process) +
                                               ", has no communicator for it any more");
  }
  shared_ = static_cast<Shared*>(memory);
  if (shared_->secret != parts.secret) {
    return refuse(NcclResult::SystemError, "the unique id has been used before");
  }
  return NcclResult::Success;
}

NcclResult Meeting::meet(const NcclUniqueId& id, int ranks, int rank, int device, int version,
                         std::chrono::seconds deadline) {
  ranks_ = ranks;
  if (const NcclResult result = open(id); result != NcclResult::Success) return result;
  int said = 0;
  if (!shared_->ranks.compare_exchange_strong(said, ranks) && said != ranks) {
    return refuse(NcclResult::InvalidArgument, "rank " + std::to_string(rank) + " is one of " +
                                                   std::to_string(ranks) + ", others are of " +
                                                   std::to_string(said));
  }
  Shared::RankPlace& own = shared_->places[static_cast<std::size_t>(rank)];
  if (own.is_taken.exchange(true)) {
    return refuse(NcclResult::InvalidUsage, "rank " + std::to_string(rank) + " has come twice");
  }
  own.device = device;
  own.version = version;
  own.has_come = true;
  const auto end = std::chrono::steady_clock::now() + deadline;
  for (int other = 0; other < ranks; ++other) {
    while (!shared_->places[static_cast<std::size_t>(other)].has_come) {
      if (std::chrono::steady_clock::now() > end) {
        return refuse(NcclResult::SystemError,
                      "rank " + std::to_string(other) + " has not come in time");
      }
      std::this_thread::sleep_for(std::chrono::microseconds(200));
    }
  }
  IdParts parts;
  std::memcpy(&parts, &id, sizeof parts);
  // All have mapped the file.
  if (parts.process == getpid() && !shared_->is_file_closed.exchange(true)) close(parts.file);
  return check_ranks();
}

NcclResult Meeting::check_ranks() const {
  for (int a = 0; a < ranks_; ++a) {
    for (int b = 0; b < a; ++b) {
      const Shared::RankPlace& one = shared_->places[static_cast<std::size_t>(b)];
      const Shared::RankPlace& other = shared_->places[static_cast<std::size_t>(a)];
      const std::string both = "rank " + std::to_string(b) + " and rank " + std::to_string(a);
      if (one.device == other.device) {
        return refuse(NcclResult::InvalidUsage, "Duplicate GPU detected : " + both +
                                                    " both on CUDA device " +
                                                    std::to_string(one.device));
      }
      if (one.version != other.version) {
        return refuse(NcclResult::InvalidUsage, "Mismatched NCCL version detected : " + both +
                                                    " have " + std::to_string(one.version) +
                                                    " and " + std::to_string(other.version));
      }
    }
  }
  return NcclResult::Success;
}

Mailbox& Meeting::mailbox(int from, int to, MailLane lane) const {
  const auto size = static_cast<std::size_t>(ranks_);
  const std::size_t at =
      (static_cast<std::size_t>(from) * size + static_cast<std::size_t>(to)) * 2 +
      static_cast<std::size_t>(lane);
  auto* const first =
      reinterpret_cast<Mailbox*>(reinterpret_cast<std::byte*>(shared_) + kMailboxesAt);
  return first[at];
}

void Meeting::fail(NcclResult result, const std::string& text) {
  if (shared_->failing.exchange(1) != 0) return;
  std::strncpy(shared_->failure_text.data(), text.c_str(), shared_->failure_text.size() - 1);
  shared_->failure = static_cast<int>(result);
}

NcclResult Meeting::failure() const { return static_cast<NcclResult>(shared_->failure.load()); }

std::string Meeting::failure_text() const {
  return failure() == NcclResult::Success ? "" : shared_->failure_text.data();
}

}  // namespace fake_nccl
