// SPDX-License-Identifier: Apache-2.0
#include "ipc/shared_memory.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <utility>

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/mman.h>
#include <sys/resource.h>
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

// The mode of a memory that peers may read: only its owner, or root, opens it again for writing.
constexpr mode_t kReadable = S_IRUSR;
// The mode of inputs: mincore() tells which pages exist only to a process that may write.
constexpr mode_t kAllMayWrite = S_IWGRP | S_IWOTH;
constexpr int kNoHoles = F_SEAL_WRITE | F_SEAL_FUTURE_WRITE;

// What mincore() tells of at once.
constexpr size_t kLookPages = 4096;

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

// The same file, only for reading.
Fd open_read_only(int fd, mode_t mode) {
  if (::fchmod(fd, mode) != 0) return {};
  return Fd(::open(fmt::format("/proc/self/fd/{}", fd).c_str(), O_RDONLY | O_CLOEXEC));
}

// Who may write adds a seal of its own, see adopt(); nobody else adds one.
Status seal_size(int fd, SharedMemory::Access peers, const std::string& what) {
  const int last = peers == SharedMemory::Access::ReadOnly ? F_SEAL_SEAL : 0;
  if (::fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | last) != 0) {
    return Status::from_errno(errno,
                              fmt::format("cannot seal the size of the shared memory '{}'", what));
  }
  return {};
}

// Beyond the limit the kernel ends a process with SIGXFSZ, unless it ignores that.
Status check_file_limit(uint64_t bytes, const std::string& what) {
  rlimit files{};
  if (::getrlimit(RLIMIT_FSIZE, &files) != 0 || files.rlim_cur == RLIM_INFINITY ||
      bytes <= files.rlim_cur)
    return {};
  return make_status(StatusCode::ResourceExhausted,
                     "cannot make {}: process '{}' may only make files of {} bytes (RLIMIT_FSIZE), "
                     "and that goes for shared memory as well; start it after 'ulimit -f "
                     "unlimited' (in a unit of systemd: LimitFSIZE=infinity)",
                     what, program_invocation_short_name, files.rlim_cur);
}

Status check_adopted(int fd, uint64_t bytes, uint64_t bytes_max, const std::string& what) {
  if (bytes == 0 || bytes > bytes_max) {
    return make_status(StatusCode::InvalidArgument, "the {} has {} bytes; allowed are 1 to {}",
                       what, bytes, bytes_max);
  }
  BRAID_RETURN_IF_ERROR(check_memfd(fd, what));
  const int seals = ::fcntl(fd, F_GET_SEALS);
  struct stat info {};
  if (::fstat(fd, &info) != 0) return Status::from_errno(errno, "the " + what);
  if ((seals & F_SEAL_SHRINK) == 0) {
    return make_status(StatusCode::InvalidArgument,
                       "the {} may still shrink; it must be sealed with F_SEAL_SHRINK", what);
  }
  if (static_cast<uint64_t>(info.st_size) != bytes) {
    return make_status(StatusCode::InvalidArgument,
                       "the {} was announced with {} bytes, but it has {}", what, bytes,
                       info.st_size);
  }
  return {};
}

// mincore() calls all pages present where this process could not open the file for writing.
bool tells_of_pages(int fd) {
  struct stat info {};
  if (::fstat(fd, &info) != 0) return false;
  return ::geteuid() == 0 || info.st_uid == ::geteuid() ||
         (info.st_mode & kAllMayWrite) == kAllMayWrite;
}

}  // namespace

// Seals first: another kind of file has none, and only then is it known that its file system
// answers. Huge pages have seals as well, but where none is free the first touch is a SIGBUS.
Status check_memfd(int fd, const std::string& what) {
  struct statfs system {};
  if (::fcntl(fd, F_GET_SEALS) < 0 || ::fstatfs(fd, &system) != 0) {
    return make_status(StatusCode::InvalidArgument,
                       "the {} is not a memfd; only memory made by memfd_create is taken", what);
  }
  if (system.f_type != TMPFS_MAGIC || static_cast<uint64_t>(system.f_bsize) != page_bytes()) {
    return make_status(
        StatusCode::InvalidArgument,
        "the {} is a memfd of huge pages (MFD_HUGETLB); only ordinary pages are taken", what);
  }
  return {};
}

SharedMemory::SharedMemory(SharedMemory&& other) noexcept
    : fd_(std::move(other.fd_)),
      peers_fd_(std::move(other.peers_fd_)),
      data_(std::exchange(other.data_, nullptr)),
      size_(std::exchange(other.size_, 0)),
      keeps_pages_(std::exchange(other.keeps_pages_, false)) {}

SharedMemory& SharedMemory::operator=(SharedMemory&& other) noexcept {
  if (this != &other) {
    unmap();
    fd_ = std::move(other.fd_);
    peers_fd_ = std::move(other.peers_fd_);
    data_ = std::exchange(other.data_, nullptr);
    size_ = std::exchange(other.size_, 0);
    keeps_pages_ = std::exchange(other.keeps_pages_, false);
  }
  return *this;
}

SharedMemory::~SharedMemory() { unmap(); }

void SharedMemory::unmap() {
  if (data_ != nullptr) ::munmap(std::exchange(data_, nullptr), std::exchange(size_, 0));
}

Result<SharedMemory> SharedMemory::create(const std::string& name, uint64_t bytes, Access peers) {
  return make(name, bytes, {.peers = peers, .mode = kReadable});
}

Result<SharedMemory> SharedMemory::create_input(const std::string& name, uint64_t bytes,
                                                Holes holes) {
  return make(name, bytes,
              {.peers = Access::ReadOnly, .mode = kReadable | kAllMayWrite, .holes = holes});
}

Result<SharedMemory> SharedMemory::make(const std::string& name, uint64_t bytes, const Use& use) {
  const std::string what = fmt::format("shared memory ('{}', {} bytes)", name, bytes);
  if (bytes == 0 || bytes > static_cast<uint64_t>(INT64_MAX))
    return make_status(StatusCode::InvalidArgument, "cannot make {}: impossible size", what);
  BRAID_RETURN_IF_ERROR(check_file_limit(bytes, what));
  SharedMemory made;
  made.fd_ = Fd(::memfd_create(name.c_str(), MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!made.fd_.is_valid() || ::ftruncate(made.fd_.get(), static_cast<off_t>(bytes)) != 0)
    return Status::from_errno(errno, "cannot make " + what);
  // Mapped before it is sealed: the seal against writing leaves mappings that exist alone.
  BRAID_RETURN_IF_ERROR(made.map(bytes, Access::ReadWrite, what));
  if (use.peers == Access::ReadOnly) BRAID_RETURN_IF_ERROR(made.restrict_peers(name, use.mode));
  if (use.holes == Holes::Never)
    (void)::fcntl(made.fd_.get(), F_ADD_SEALS, F_SEAL_FUTURE_WRITE);  // before 5.1: EINVAL
  BRAID_RETURN_IF_ERROR(seal_size(made.fd_.get(), use.peers, name));
  made.keeps_pages_ = (::fcntl(made.fd_.get(), F_GET_SEALS) & kNoHoles) != 0;
  return made;
}

// The seal against writing would do, but the kernel makes no holes in memory that has it.
Status SharedMemory::restrict_peers(const std::string& what, mode_t mode) {
  peers_fd_ = open_read_only(fd_.get(), mode);
  if (peers_fd_.is_valid()) return {};
  if (::fcntl(fd_.get(), F_ADD_SEALS, F_SEAL_FUTURE_WRITE) == 0 || errno == EINVAL) return {};
  return Status::from_errno(
      errno, fmt::format("cannot seal the shared memory '{}' against writing", what));
}

Result<SharedMemory> SharedMemory::adopt(Fd fd, uint64_t bytes, uint64_t bytes_max, Access access,
                                         const std::string& what) {
  BRAID_RETURN_IF_ERROR(check_adopted(fd.get(), bytes, bytes_max, what));
  SharedMemory made;
  made.fd_ = std::move(fd);
  BRAID_RETURN_IF_ERROR(made.map(bytes, access, fmt::format("the {} ({} bytes)", what, bytes)));
  // Leaves the mappings that exist as they are.
  if (access == Access::ReadWrite) (void)::fcntl(made.fd_.get(), F_ADD_SEALS, F_SEAL_FUTURE_WRITE);
  made.keeps_pages_ = (::fcntl(made.fd_.get(), F_GET_SEALS) & kNoHoles) != 0;
  return made;
}

Status SharedMemory::map(uint64_t bytes, Access access, const std::string& what) {
  const int protection = access == Access::ReadWrite ? PROT_READ | PROT_WRITE : PROT_READ;
  uint8_t* const memory = map_aligned(fd_.get(), bytes, protection);
  if (memory == nullptr) {
    const char* hint = errno == ENOMEM ? " (does 'ulimit -v' bound the address space?)" : "";
    return Status::from_errno(errno, "cannot map " + what + hint);
  }
  data_ = memory;
  size_ = bytes;
  return {};
}

Status SharedMemory::reserve(uint64_t offset, uint64_t bytes) {
  if (!range_fits(offset, bytes, size_)) {
    return make_status(StatusCode::InvalidArgument,
                       "bytes {} and the {} that follow are not within memory of {}", offset, bytes,
                       size_);
  }
  const uint64_t end = offset + bytes;
  make_huge(round_up(offset, kHugePageBytes), end / kHugePageBytes * kHugePageBytes);
  while (offset < end) {
    const uint64_t piece = std::min(end - offset, kReservePieceBytes);
    if (::fallocate(fd_.get(), 0, static_cast<off_t>(offset), static_cast<off_t>(piece)) == 0) {
      offset += piece;
    } else if (errno != EINTR) {
      return Status::from_errno(errno, fmt::format("cannot get {} bytes of shared memory", bytes));
    }
  }
  return {};
}

Status SharedMemory::give_back(uint64_t offset, uint64_t bytes) {
  if (!range_fits(offset, bytes, size_)) {
    return make_status(StatusCode::InvalidArgument,
                       "bytes {} and the {} that follow are not within memory of {}", offset, bytes,
                       size_);
  }
  while (::fallocate(fd_.get(), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
                     static_cast<off_t>(offset), static_cast<off_t>(bytes)) != 0) {
    if (errno != EINTR)
      return Status::from_errno(errno,
                                fmt::format("cannot give back {} bytes of shared memory", bytes));
  }
  return {};
}

uint64_t SharedMemory::memory_bytes() const {
  struct stat info {};
  return ::fstat(fd_.get(), &info) == 0 ? static_cast<uint64_t>(info.st_blocks) * 512 : 0;
}

// Not by SEEK_HOLE: it waits for the file's lock, which who has the file can hold for ever.
uint64_t SharedMemory::missing_bytes(uint64_t offset, uint64_t bytes) const {
  if (offset >= size_ || bytes == 0) return 0;
  const uint64_t first = offset / page_bytes() * page_bytes();
  const uint64_t end = offset + std::min(bytes, size_ - offset);
  if (!tells_of_pages(fd_.get())) return round_up(end - first, page_bytes());
  uint64_t missing = 0;
  std::array<unsigned char, kLookPages> present;  // NOLINT: mincore() fills it
  for (uint64_t at = first; at < end; at += kLookPages * page_bytes()) {
    const uint64_t piece = std::min(end - at, kLookPages * page_bytes());
    const size_t pages = round_up(piece, page_bytes()) / page_bytes();
    if (::mincore(const_cast<uint8_t*>(data_) + at, piece, present.data()) != 0) present.fill(0);
    missing += static_cast<uint64_t>(
        std::count_if(present.begin(), present.begin() + static_cast<std::ptrdiff_t>(pages),
                      [](unsigned char page) { return (page & 1) == 0; }));
  }
  return missing * page_bytes();
}

// A page of each block, then the rest of it at once: four times faster than small pages, of which
// each costs a fault at its first touch on either side besides. Where the kernel is older, has no
// huge page left or was told to make none (shmem_enabled: deny), the pages stay small.
void SharedMemory::make_huge(uint64_t begin, uint64_t end) {
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
