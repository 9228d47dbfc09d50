// SPDX-License-Identifier: Apache-2.0
#include "memory.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstring>
#include <mutex>
#include <numeric>

#include <sys/mman.h>
#include <unistd.h>

#include "settings.h"

namespace fake_cuda {
namespace {

constexpr std::size_t kPart = std::size_t{1} << 20;  // bytes of an access under one lock
constexpr std::size_t kPage = 4096;

std::uintptr_t page_of(std::uintptr_t address) { return address / kPage * kPage; }
std::uintptr_t page_end(std::uintptr_t address) { return page_of(address + kPage - 1); }

/// Pages of this part that are not in memory.
std::size_t count_missing(const std::byte* at, std::size_t bytes) {
  std::array<unsigned char, kPart / kPage + 2> is_there{};
  const auto begin = page_of(reinterpret_cast<std::uintptr_t>(at));
  const auto end = page_end(reinterpret_cast<std::uintptr_t>(at) + bytes);
  const std::size_t pages = (end - begin) / kPage;
  if (mincore(reinterpret_cast<void*>(begin), end - begin, is_there.data()) != 0) {
    return pages;  // not mapped any more
  }
  return static_cast<std::size_t>(
      std::count_if(is_there.begin(), is_there.begin() + static_cast<std::ptrdiff_t>(pages),
                    [](unsigned char page) { return (page & 1) == 0; }));
}

bool overlaps(const std::map<std::uintptr_t, Range>& ranges, std::uintptr_t begin,
              std::uintptr_t end) {
  const auto next = ranges.upper_bound(begin);
  return next != ranges.end() && next->second.begin < end;
}

/// Maps a new file twice: where the program sees it, and where the library touches it.
bool map_device_memory(Range& range) {
  const int file = memfd_create("fake_cuda", MFD_CLOEXEC);
  if (file < 0) {
    return false;
  }
  void* library = MAP_FAILED;
  void* program = MAP_FAILED;
  if (ftruncate(file, static_cast<off_t>(range.bytes)) == 0) {
    library = mmap(nullptr, range.bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    program = mmap(nullptr, range.bytes, settings().unified ? PROT_READ | PROT_WRITE : PROT_NONE,
                   MAP_SHARED, file, 0);
  }
  close(file);
  if (library == MAP_FAILED || program == MAP_FAILED) {
    if (library != MAP_FAILED) munmap(library, range.bytes);
    if (program != MAP_FAILED) munmap(program, range.bytes);
    return false;
  }
  range.library = static_cast<std::byte*>(library);
  range.begin = reinterpret_cast<std::uintptr_t>(program);
  return true;
}

void unmap_device_memory(const Range& range) {
  munmap(range.library, range.bytes);
  munmap(reinterpret_cast<void*>(range.begin), range.bytes);
}

std::uint64_t bytes_in(const std::map<std::uintptr_t, Range>& ranges) {
  return std::accumulate(ranges.begin(), ranges.end(), std::uint64_t{0},
                         [](std::uint64_t sum, const auto& one) { return sum + one.second.bytes; });
}

}  // namespace

Memory& Memory::get() {
  static Memory* const kMemory = new Memory;
  return *kMemory;
}

CUresult Memory::allocate(int device, std::size_t bytes, CUdeviceptr& address) {
  constexpr std::size_t kMost = std::size_t{1} << 40;
  if (bytes == 0) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  Range range;
  range.bytes = bytes <= kMost ? page_end(bytes) : bytes;
  range.device = device;
  range.is_device = true;
  if (bytes > kMost || !map_device_memory(range)) {
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
  const std::scoped_lock lock(mutex_);
  range.bytes = bytes;
  range.id = ++last_id_;
  device_.emplace(range.begin + range.bytes, range);
  address = range.begin;
  return CUDA_SUCCESS;
}

CUresult Memory::free(CUdeviceptr address) {
  const std::scoped_lock lock(mutex_);
  const auto found = device_.upper_bound(address);
  if (found == device_.end() || found->second.begin != address) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  unmap_device_memory(found->second);
  device_.erase(found);
  return CUDA_SUCCESS;
}

CUresult Memory::register_host(int device, void* address, std::size_t bytes, unsigned flags) {
  const auto begin = reinterpret_cast<std::uintptr_t>(address);
  if (begin == 0 || bytes == 0 || begin + bytes < begin) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  const bool is_read_only = (flags & CU_MEMHOSTREGISTER_READ_ONLY) != 0;
  const std::scoped_lock lock(mutex_);
  if (overlaps(device_, begin, begin + bytes)) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  const bool is_registered = std::ranges::any_of(host_, [&](const auto& one) {
    const Range& other = one.second;
    return page_of(other.begin) < page_end(begin + bytes) &&
           page_of(begin) < page_end(other.begin + other.bytes);
  });
  if (is_registered) {
    return CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED;
  }
  const auto most = settings().register_max_mib;
  if (most && (bytes > *most << 20 || bytes_in(host_) > (*most << 20) - bytes)) {
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
  // The driver pins the pages: all of them are there, and the process must be allowed to write to
  // them.
  if (madvise(reinterpret_cast<void*>(page_of(begin)), page_end(begin + bytes) - page_of(begin),
              is_read_only ? MADV_POPULATE_READ : MADV_POPULATE_WRITE) != 0) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  host_.emplace(begin + bytes, Range{begin, bytes, device, false, flags,
                                     static_cast<std::byte*>(address), ++last_id_});
  return CUDA_SUCCESS;
}

CUresult Memory::unregister_host(void* address) {
  const auto begin = reinterpret_cast<std::uintptr_t>(address);
  const std::scoped_lock lock(mutex_);
  const auto found = host_.upper_bound(begin);
  if (begin == 0 || found == host_.end() || found->second.begin != begin) {
    return CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED;
  }
  host_.erase(found);
  return CUDA_SUCCESS;
}

void Memory::forget(int device) {
  const std::scoped_lock lock(mutex_);
  std::erase_if(device_, [&](const auto& one) {
    const bool is_of_it = one.second.device == device;
    if (is_of_it) {
      unmap_device_memory(one.second);
    }
    return is_of_it;
  });
  std::erase_if(host_, [&](const auto& one) { return one.second.device == device; });
}

const Range* Memory::find_locked(std::uintptr_t address, std::size_t bytes) const {
  for (const Ranges* ranges : {&device_, &host_}) {
    const auto found = ranges->upper_bound(address);
    if (found != ranges->end() && found->second.begin <= address &&
        bytes <= found->first - address) {
      return &found->second;
    }
  }
  return nullptr;
}

std::optional<Range> Memory::find(std::uintptr_t address, std::size_t bytes) const {
  const std::shared_lock lock(mutex_);
  const Range* found = find_locked(address, bytes);
  return found == nullptr ? std::nullopt : std::optional(*found);
}

bool Memory::touches(std::uintptr_t address, std::size_t bytes) const {
  const std::shared_lock lock(mutex_);
  return overlaps(device_, address, address + bytes) || overlaps(host_, address, address + bytes);
}

std::byte* Memory::bytes_locked(Side side, std::size_t bytes, bool is_written) {
  if (!side.is_checked) {
    return reinterpret_cast<std::byte*>(side.address);
  }
  const Range* range = find_locked(side.address, bytes);
  if (range == nullptr || (is_written && (range->flags & CU_MEMHOSTREGISTER_READ_ONLY) != 0)) {
    return nullptr;
  }
  std::byte* const at = range->library + (side.address - range->begin);
  if (range->is_device) {
    return at;
  }
  if (const std::size_t missing = count_missing(at, bytes); missing != 0) {
    missing_pages_ += missing;
    std::fprintf(stderr,
                 "fake CUDA: %zu pages of the registered memory at %p are missing: punched out or "
                 "discarded\n",
                 missing, static_cast<void*>(at));
    return nullptr;
  }
  return at;
}

CUresult Memory::copy(Side to, Side from, std::size_t bytes) {
  for (std::size_t done = 0; done < bytes;) {
    const std::size_t part = std::min(kPart, bytes - done);
    const std::shared_lock lock(mutex_);
    std::byte* const target = bytes_locked({to.address + done, to.is_checked}, part, true);
    const std::byte* const source =
        bytes_locked({from.address + done, from.is_checked}, part, false);
    if (target == nullptr || source == nullptr) {
      return CUDA_ERROR_ILLEGAL_ADDRESS;
    }
    std::memmove(target, source, part);
    done += part;
  }
  return CUDA_SUCCESS;
}

CUresult Memory::fill(std::uintptr_t address, unsigned char value, std::size_t bytes) {
  for (std::size_t done = 0; done < bytes;) {
    const std::size_t part = std::min(kPart, bytes - done);
    const std::shared_lock lock(mutex_);
    std::byte* const target = bytes_locked({address + done, true}, part, true);
    if (target == nullptr) {
      return CUDA_ERROR_ILLEGAL_ADDRESS;
    }
    std::memset(target, value, part);
    done += part;
  }
  return CUDA_SUCCESS;
}

CUresult Memory::load_word(std::uintptr_t address, std::uint32_t& value) {
  const std::shared_lock lock(mutex_);
  const std::byte* const at = bytes_locked({address, true}, sizeof(value), false);
  if (at == nullptr) {
    return CUDA_ERROR_ILLEGAL_ADDRESS;
  }
  value = __atomic_load_n(reinterpret_cast<const std::uint32_t*>(at), __ATOMIC_ACQUIRE);
  return CUDA_SUCCESS;
}

CUresult Memory::store_word(std::uintptr_t address, std::uint32_t value) {
  const std::shared_lock lock(mutex_);
  std::byte* const at = bytes_locked({address, true}, sizeof(value), true);
  if (at == nullptr) {
    return CUDA_ERROR_ILLEGAL_ADDRESS;
  }
  __atomic_store_n(reinterpret_cast<std::uint32_t*>(at), value, __ATOMIC_RELEASE);
  return CUDA_SUCCESS;
}

std::uint64_t Memory::allocations() const {
  const std::shared_lock lock(mutex_);
  return device_.size();
}

std::uint64_t Memory::allocated_bytes() const {
  const std::shared_lock lock(mutex_);
  return bytes_in(device_);
}

std::uint64_t Memory::registrations() const {
  const std::shared_lock lock(mutex_);
  return host_.size();
}

std::uint64_t Memory::registered_bytes() const {
  const std::shared_lock lock(mutex_);
  return bytes_in(host_);
}

}  // namespace fake_cuda
