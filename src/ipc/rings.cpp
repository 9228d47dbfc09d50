// SPDX-License-Identifier: Apache-2.0
#include "ipc/rings.h"

#include <bit>
#include <cerrno>
#include <new>

#include <poll.h>
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

bool is_ready(int fd, short events) {
  pollfd poll{fd, events, 0};
  return ::poll(&poll, 1, 0) == 1 && (poll.revents & events) != 0;
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

IpcResult<RingsView> check_rings(uint8_t* memory, uint64_t bytes, uint32_t submit_capacity,
                                 uint32_t done_capacity) {
  if (!is_ring_capacity(submit_capacity) || !is_ring_capacity(done_capacity)) {
    return {
        {},
        {EPROTO, "ring capacities must be powers of two from 2 to " +
                     std::to_string(proto::kRingCapacityMax) + ", not " +
                     std::to_string(submit_capacity) + " and " + std::to_string(done_capacity)}};
  }
  if (bytes != proto::rings_bytes(submit_capacity, done_capacity)) {
    return {{},
            {EPROTO, "the rings' memory has " + std::to_string(bytes) +
                         " bytes; their capacities make " +
                         std::to_string(proto::rings_bytes(submit_capacity, done_capacity))}};
  }
  const RingsView view = view_of(memory, submit_capacity, done_capacity);
  if (view.header->magic != proto::kRingsMagic) {
    return {{}, {EPROTO, "the rings' memory does not begin with the rings' magic number"}};
  }
  if (view.header->version != proto::kClientProtocolVersion) {
    return {{},
            {EPROTO, "the rings have version " + std::to_string(view.header->version) +
                         ", expected was " + std::to_string(proto::kClientProtocolVersion)}};
  }
  if (view.header->submit_capacity != submit_capacity ||
      view.header->done_capacity != done_capacity) {
    return {{},
            {EPROTO, "the rings' header names other capacities than the message that brought it"}};
  }
  return {view, {}};
}

IpcError check_submit_entry(const proto::SubmitEntry& entry) {
  const auto refuse = [](const char* field, uint64_t value) {
    return IpcError{EPROTO, "a submission with the impossible " + std::string(field) + " " +
                                std::to_string(value)};
  };
  if (entry.kind != static_cast<uint8_t>(proto::SubmitKind::Operation) &&
      entry.kind != static_cast<uint8_t>(proto::SubmitKind::Release)) {
    return refuse("kind", entry.kind);
  }
  if (entry.ticket == 0) return refuse("ticket", entry.ticket);
  if (entry.kind == static_cast<uint8_t>(proto::SubmitKind::Release)) return {};
  if (entry.collective >= kCollectiveCount) return refuse("collective", entry.collective);
  if (entry.dtype >= kDataTypeCount) return refuse("dtype", entry.dtype);
  if (entry.reduction >= kReductionCount) return refuse("reduction", entry.reduction);
  return {};
}

IpcError check_eventfd(int fd, const std::string& what) {
  const std::string link = "/proc/self/fd/" + std::to_string(fd);
  char target[64] = {};
  const ssize_t length = ::readlink(link.c_str(), target, sizeof(target) - 1);
  if (length < 0) return IpcError::from_errno(errno, "cannot tell what the " + what + " is");
  if (std::string(target) != "anon_inode:[eventfd]")
    return {EPROTO, "the " + what + " is not an eventfd but " + target};
  return {};
}

void signal_eventfd(int fd) {
  if (!is_ready(fd, POLLOUT)) return;  // its counter is full: it is as signalled as can be
  const uint64_t one = 1;
  while (::write(fd, &one, sizeof(one)) < 0 && errno == EINTR) {
  }
}

void drain_eventfd(int fd) {
  if (!is_ready(fd, POLLIN)) return;
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
