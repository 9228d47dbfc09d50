// SPDX-License-Identifier: Apache-2.0
#include "ipc/segment.h"

#include <algorithm>
#include <cerrno>
#include <utility>

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/checked.h"

// Since Linux 5.1; older C libraries don't have it.
#ifndef F_SEAL_FUTURE_WRITE
#define F_SEAL_FUTURE_WRITE 0x0010
#endif
// Since Linux 6.1.
#ifndef MADV_COLLAPSE
#define MADV_COLLAPSE 25
#endif

namespace braid {
namespace {

// fallocate gives everything back and starts anew when a signal comes. In pieces of this size it
// makes progress even in a process whose profiler sends a signal every few milliseconds.
constexpr uint64_t kReservePieceBytes = 4ull << 20;
// Huge pages are asked for so many bytes at a time: each call waits until every processor has
// emptied its lists of pages, so a call for each page takes twenty times as long; and one for all
// would be hard to interrupt.
constexpr uint64_t kHugeSliceBytes = 64ull << 20;

uint64_t page_bytes() {
  static const auto bytes = static_cast<uint64_t>(::sysconf(_SC_PAGESIZE));
  return bytes;
}

// Starts on a border of huge pages, as the file does: else none of it could be mapped as one.
// nullptr: errno says why.
uint8_t* map_aligned(int fd, uint64_t bytes, int protection) {
  const uint64_t spare = bytes < kHugePageBytes ? 0 : kHugePageBytes;
  void* room =
      ::mmap(nullptr, bytes + spare, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (room == MAP_FAILED) return nullptr;
  auto* const begin = static_cast<uint8_t*>(room);
  const auto address = reinterpret_cast<uintptr_t>(room);
  const uint64_t before = spare == 0 ? 0 : round_up(address, kHugePageBytes) - address;
  void* memory =
      ::mmap(begin + before, bytes, protection, MAP_SHARED | MAP_NORESERVE | MAP_FIXED, fd, 0);
  if (memory == MAP_FAILED) {
    const int error = errno;
    ::munmap(room, bytes + spare);
    errno = error;
    return nullptr;
  }
  const uint64_t end = round_up(before + bytes, page_bytes());
  const uint64_t room_end = round_up(bytes + spare, page_bytes());
  if (before != 0) ::munmap(room, before);
  if (end < room_end) ::munmap(begin + end, room_end - end);
  return static_cast<uint8_t*>(memory);
}

IpcError seal(int fd, Segment::Access peers, const std::string& what) {
  if (peers == Segment::Access::ReadOnly && ::fcntl(fd, F_ADD_SEALS, F_SEAL_FUTURE_WRITE) != 0 &&
      errno != EINVAL) {
    return IpcError::from_errno(errno, "cannot seal the segment '" + what + "' against writing");
  }
  if (::fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0) {
    return IpcError::from_errno(errno, "cannot seal the size of the segment '" + what + "'");
  }
  return {};
}

IpcError check_adopted(int fd, uint64_t bytes, uint64_t bytes_max, const std::string& what) {
  if (bytes == 0 || bytes > bytes_max) {
    return {EINVAL, "the " + what + " has " + std::to_string(bytes) + " bytes; allowed are 1 to " +
                        std::to_string(bytes_max)};
  }
  if (IpcError error = check_memfd(fd, what); !error.is_ok()) return error;
  const int seals = ::fcntl(fd, F_GET_SEALS);
  struct stat info {};
  if (::fstat(fd, &info) != 0) return IpcError::from_errno(errno, "the " + what);
  if ((seals & F_SEAL_SHRINK) == 0) {
    return {EINVAL, "the " + what + " may still shrink; it must be sealed with F_SEAL_SHRINK"};
  }
  if (static_cast<uint64_t>(info.st_size) != bytes) {
    return {EINVAL, "the " + what + " was announced with " + std::to_string(bytes) +
                        " bytes, but it has " + std::to_string(info.st_size)};
  }
  return {};
}

}  // namespace

// Seals first: another kind of file has none, and only then is it known that its file system
// answers. Huge pages have seals as well, but where none is free the first touch is a SIGBUS.
IpcError check_memfd(int fd, const std::string& what) {
  struct statfs system {};
  if (::fcntl(fd, F_GET_SEALS) < 0 || ::fstatfs(fd, &system) != 0) {
    return {EINVAL, "the " + what + " is not a memfd; only memory made by memfd_create is taken"};
  }
  if (system.f_type != TMPFS_MAGIC || static_cast<uint64_t>(system.f_bsize) != page_bytes()) {
    return {EINVAL, "the " + what +
                        " is a memfd of huge pages (MFD_HUGETLB); only ordinary pages "
                        "are taken"};
  }
  return {};
}

Segment::Segment(Segment&& other) noexcept
    : fd_(std::move(other.fd_)),
      data_(std::exchange(other.data_, nullptr)),
      size_(std::exchange(other.size_, 0)) {}

Segment& Segment::operator=(Segment&& other) noexcept {
  if (this != &other) {
    unmap();
    fd_ = std::move(other.fd_);
    data_ = std::exchange(other.data_, nullptr);
    size_ = std::exchange(other.size_, 0);
  }
  return *this;
}

Segment::~Segment() { unmap(); }

void Segment::unmap() {
  if (data_ != nullptr) ::munmap(std::exchange(data_, nullptr), std::exchange(size_, 0));
}

IpcResult<Segment> Segment::create(const std::string& name, uint64_t bytes, Access peers) {
  IpcResult<Segment> result;
  Segment& segment = result.value;
  const std::string what =
      "a shared memory segment ('" + name + "', " + std::to_string(bytes) + " bytes)";
  if (bytes == 0 || bytes > static_cast<uint64_t>(INT64_MAX)) {
    result.error = {EINVAL, "cannot make " + what + ": impossible size"};
    return result;
  }
  segment.fd_ = Fd(::memfd_create(name.c_str(), MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!segment.fd_.is_valid() || ::ftruncate(segment.fd_.get(), static_cast<off_t>(bytes)) != 0) {
    result.error = IpcError::from_errno(errno, "cannot make " + what);
    return result;
  }
  // Mapped before it is sealed: the seal against writing leaves mappings that exist alone.
  result.error = segment.map(bytes, Access::ReadWrite, what);
  if (result.error.is_ok()) result.error = seal(segment.fd_.get(), peers, name);
  return result;
}

IpcResult<Segment> Segment::adopt(Fd fd, uint64_t bytes, uint64_t bytes_max, Access access,
                                  const std::string& what) {
  IpcResult<Segment> result;
  result.error = check_adopted(fd.get(), bytes, bytes_max, what);
  if (!result.error.is_ok()) return result;
  result.value.fd_ = std::move(fd);
  result.error =
      result.value.map(bytes, access, "the " + what + " (" + std::to_string(bytes) + " bytes)");
  return result;
}

IpcError Segment::map(uint64_t bytes, Access access, const std::string& what) {
  const int protection = access == Access::ReadWrite ? PROT_READ | PROT_WRITE : PROT_READ;
  uint8_t* const memory = map_aligned(fd_.get(), bytes, protection);
  if (memory == nullptr) {
    const char* hint = errno == ENOMEM ? " (does 'ulimit -v' bound the address space?)" : "";
    return IpcError::from_errno(errno, "cannot map " + what + hint);
  }
  data_ = memory;
  size_ = bytes;
  return {};
}

IpcError Segment::reserve(uint64_t offset, uint64_t bytes) {
  if (!range_fits(offset, bytes, size_)) {
    return {EINVAL, "bytes " + std::to_string(offset) + " and the " + std::to_string(bytes) +
                        " that follow are not within a segment of " + std::to_string(size_)};
  }
  const uint64_t end = offset + bytes;
  make_huge(round_up(offset, kHugePageBytes), end / kHugePageBytes * kHugePageBytes);
  while (offset < end) {
    const uint64_t piece = std::min(end - offset, kReservePieceBytes);
    if (::fallocate(fd_.get(), 0, static_cast<off_t>(offset), static_cast<off_t>(piece)) == 0) {
      offset += piece;
    } else if (errno != EINTR) {
      return IpcError::from_errno(
          errno, "cannot get " + std::to_string(bytes) + " bytes of shared memory");
    }
  }
  return {};
}

// A page of each block, then the rest of it at once: four times faster than small pages, of which
// each costs a fault at its first touch on either side besides. Where the kernel is older, has no
// huge page left or was told to make none (shmem_enabled: deny), the pages stay small.
void Segment::make_huge(uint64_t begin, uint64_t end) {
  while (begin < end) {
    const uint64_t slice_end = std::min(end, begin + kHugeSliceBytes);
    for (uint64_t block = begin; block < slice_end; block += kHugePageBytes) {
      if (::fallocate(fd_.get(), 0, static_cast<off_t>(block), static_cast<off_t>(page_bytes())) !=
          0)
        return;
    }
    if (::madvise(data_ + begin, slice_end - begin, MADV_COLLAPSE) != 0) return;
    begin = slice_end;
  }
}

}  // namespace braid
