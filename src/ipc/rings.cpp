// SPDX-License-Identifier: Apache-2.0
#include "ipc/rings.h"

#include <bit>
#include <cerrno>
#include <cstddef>
#include <new>

#include <sys/socket.h>
#include <unistd.h>

#include "proto/types.h"
#include "proto/version.h"

namespace braid {
namespace {

RingsView view_of(uint8_t* memory, uint32_t submit_capacity, uint32_t done_capacity) {
  RingsView view;
  view.header = reinterpret_cast<proto::RingsHeader*>(memory);
  view.submit = reinterpret_cast<proto::SubmitEntry*>(memory + sizeof(proto::RingsHeader));
  view.done = reinterpret_cast<proto::DoneEntry*>(view.submit + submit_capacity);
  view.submit_capacity = submit_capacity;
  view.done_capacity = done_capacity;
  return view;
}

// What no field of the header has that the client writes: later versions may put fields there.
struct ByteRange {
  size_t begin;
  size_t end;
};
constexpr size_t kIndexBytes = sizeof(std::atomic<uint32_t>);
constexpr size_t kSubmitAt = offsetof(proto::RingsHeader, submit);
constexpr size_t kDoneAt = offsetof(proto::RingsHeader, done);
constexpr size_t kHeadAt = offsetof(proto::RingIndices, head);
constexpr size_t kSleepsEnd = offsetof(proto::RingIndices, consumer_sleeps) + kIndexBytes;
constexpr ByteRange kReservedOfHeader[] = {
    {offsetof(proto::RingsHeader, done_capacity) + sizeof(uint32_t), kSubmitAt},
    {kSubmitAt + kIndexBytes, kSubmitAt + kHeadAt},
    {kSubmitAt + kSleepsEnd, kDoneAt},
    {kDoneAt + kIndexBytes, kDoneAt + kHeadAt},
    {kDoneAt + kSleepsEnd, sizeof(proto::RingsHeader)}};

Status refuse_reserved(const std::string& field, uint64_t value) {
  return make_status(StatusCode::Protocol, "{} is reserved and must be 0, not {}", field, value);
}

Status check_reserved(const uint8_t* header) {
  for (const ByteRange& range : kReservedOfHeader) {
    for (size_t i = range.begin; i < range.end; ++i) {
      if (header[i] != 0)
        return refuse_reserved(fmt::format("byte {} of the rings' header", i), header[i]);
    }
  }
  return Status::ok();
}

}  // namespace

bool is_ring_capacity(uint32_t capacity) {
  return capacity >= 2 && capacity <= proto::kRingCapacityMax && std::has_single_bit(capacity);
}

RingsView create_rings(uint8_t* memory, uint32_t submit_capacity, uint32_t done_capacity) {
  auto* header = new (memory) proto::RingsHeader{};
  header->magic = proto::kRingsMagic;
  header->version = proto::kClientProtocolVersion;
  header->submit_capacity = submit_capacity;
  header->done_capacity = done_capacity;
  return view_of(memory, submit_capacity, done_capacity);
}

Result<RingsView> check_rings(uint8_t* memory, uint64_t bytes, uint32_t submit_capacity,
                              uint32_t done_capacity) {
  if (!is_ring_capacity(submit_capacity) || !is_ring_capacity(done_capacity)) {
    return make_status(StatusCode::Protocol,
                       "ring capacities must be powers of two from 2 to {}, not {} and {}",
                       proto::kRingCapacityMax, submit_capacity, done_capacity);
  }
  if (bytes != proto::rings_bytes(submit_capacity, done_capacity)) {
    return make_status(StatusCode::Protocol,
                       "the rings' memory has {} bytes; their capacities make {}", bytes,
                       proto::rings_bytes(submit_capacity, done_capacity));
  }
  const RingsView view = view_of(memory, submit_capacity, done_capacity);
  if (view.header->magic != proto::kRingsMagic) {
    return Status(StatusCode::Protocol,
                  "the rings' memory does not begin with the rings' magic number");
  }
  if (view.header->version != proto::kClientProtocolVersion) {
    return make_status(StatusCode::Protocol, "the rings have version {}, expected was {}",
                       view.header->version, proto::kClientProtocolVersion);
  }
  if (view.header->submit_capacity != submit_capacity ||
      view.header->done_capacity != done_capacity) {
    return Status(StatusCode::Protocol,
                  "the rings' header names other capacities than the message that brought it");
  }
  BRAID_RETURN_IF_ERROR(check_reserved(memory));
  return view;
}

Status check_submit_entry(const proto::SubmitEntry& entry) {
  const auto refuse = [](const char* field, uint64_t value) {
    return make_status(StatusCode::Protocol, "a submission with the impossible {} {}", field,
                       value);
  };
  if (entry.kind < static_cast<uint8_t>(proto::SubmitKind::Operation) ||
      entry.kind > static_cast<uint8_t>(proto::SubmitKind::Receive)) {
    return refuse("kind", entry.kind);
  }
  if (entry.ticket == 0) return refuse("ticket", entry.ticket);
  const bool may_have_table = entry.kind == static_cast<uint8_t>(proto::SubmitKind::Operation) &&
                              (entry.collective == static_cast<uint8_t>(Collective::AllToAll) ||
                               entry.collective == static_cast<uint8_t>(Collective::AllReduce));
  if (!may_have_table && entry.table != 0)
    return refuse_reserved("'table' of a submission without a table", entry.table);
  if (entry.kind == static_cast<uint8_t>(proto::SubmitKind::Release)) return Status::ok();
  if (entry.reserved != 0) return refuse_reserved("'reserved' of a submission", entry.reserved);
  const bool is_message = entry.kind != static_cast<uint8_t>(proto::SubmitKind::Operation);
  if (is_message && entry.tensor != 0)
    return refuse_reserved("'tensor' of a message", entry.tensor);
  if (entry.step > kStepNumberMax) return refuse("step", entry.step);
  if (entry.collective >= kCollectiveCount) return refuse("collective", entry.collective);
  if (entry.dtype >= kDataTypeCount) return refuse("dtype", entry.dtype);
  if (entry.reduction >= kReductionCount) return refuse("reduction", entry.reduction);
  return Status::ok();
}

Status check_done_entry(const proto::DoneEntry& entry) {
  if (entry.reserved != 0) return refuse_reserved("'reserved' of a completion", entry.reserved);
  return Status::ok();
}

Status check_eventfd(int fd, const std::string& what) {
  const std::string link = fmt::format("/proc/self/fd/{}", fd);
  char target[64] = {};
  const ssize_t length = ::readlink(link.c_str(), target, sizeof(target) - 1);
  if (length < 0) return Status::from_errno(errno, fmt::format("cannot tell what the {} is", what));
  if (std::string_view(target) != "anon_inode:[eventfd]")
    return make_status(StatusCode::Protocol, "the {} is not an eventfd but {}", what, target);
  return Status::ok();
}

void signal_eventfd(int fd) {
  const uint64_t one = 1;
  // One whose counter is full is as signalled as can be.
  while (::write(fd, &one, sizeof(one)) < 0 && errno == EINTR) {
  }
}

void drain_eventfd(int fd) {
  uint64_t count = 0;
  while (::read(fd, &count, sizeof(count)) < 0 && errno == EINTR) {
  }
}

void send_wake(int socket) {
  const uint8_t byte = 1;
  // A full socket is as signalled as can be.
  while (::send(socket, &byte, sizeof(byte), MSG_DONTWAIT | MSG_NOSIGNAL) < 0 && errno == EINTR) {
  }
}

void drain_wakes(int socket) {
  uint8_t bytes[256];
  ssize_t taken = 0;
  do {
    taken = ::recv(socket, bytes, sizeof(bytes), MSG_DONTWAIT);
  } while (taken == static_cast<ssize_t>(sizeof(bytes)) || (taken < 0 && errno == EINTR));
}

}  // namespace braid
