// SPDX-License-Identifier: Apache-2.0
#include "bench/gpu/host_memory.h"

#include <atomic>
#include <cerrno>
#include <cstring>
#include <utility>

#include <sys/mman.h>

namespace braid::gpu_probe {
namespace {

constexpr size_t kHugePage = 2U << 20;
constexpr size_t kWordsBytes = 4096;
constexpr size_t kLine = 64;
// Linux 6.1; the C library's headers may be older.
constexpr int kMadvCollapse = 25;

}  // namespace

SharedMemory::SharedMemory(SharedMemory&& other) noexcept
    : fd_(std::move(other.fd_)),
      reserved_(std::exchange(other.reserved_, nullptr)),
      reserved_bytes_(other.reserved_bytes_),
      data_(other.data_),
      bytes_(other.bytes_),
      has_huge_pages_(other.has_huge_pages_) {}

SharedMemory::~SharedMemory() {
  if (reserved_ != nullptr) ::munmap(reserved_, reserved_bytes_);
}

Result<SharedMemory> SharedMemory::make(size_t bytes, Pages pages) {
  SharedMemory made;
  made.fd_ = Fd(::memfd_create("braid-gpu-probe", MFD_CLOEXEC));
  if (!made.fd_.is_valid()) return Status::from_errno(errno, "memfd_create");
  if (::ftruncate(made.fd_.get(), static_cast<off_t>(bytes)) != 0) {
    return Status::from_errno(errno, "ftruncate");
  }
  made.bytes_ = bytes;
  made.reserved_bytes_ = bytes + kHugePage;
  void* reserved = ::mmap(nullptr, made.reserved_bytes_, PROT_NONE,
                          MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (reserved == MAP_FAILED) return Status::from_errno(errno, "mmap");
  made.reserved_ = reserved;
  const auto start = reinterpret_cast<uintptr_t>(reserved);
  char* aligned = static_cast<char*>(reserved) + (kHugePage - start % kHugePage) % kHugePage;
  void* data =
      ::mmap(aligned, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, made.fd_.get(), 0);
  if (data == MAP_FAILED) return Status::from_errno(errno, "mmap");
  made.data_ = static_cast<char*>(data);
  std::memset(data, 1, bytes);
  made.has_huge_pages_ = pages == Pages::Huge && ::madvise(data, bytes, kMadvCollapse) == 0;
  return made;
}

Result<Registration> register_memory(const Gpu& gpu, void* data, size_t bytes, unsigned flags) {
  BRAID_RETURN_IF_ERROR(gpu.MemHostRegister(data, bytes, flags));
  return Registration(gpu, data);
}

Result<Words> Words::make(const Gpu& gpu) {
  Result<SharedMemory> memory = SharedMemory::make(kWordsBytes, Pages::Small);
  if (!memory.is_ok()) return memory.status();
  std::memset(memory->data(), 0, kWordsBytes);
  Result<Registration> registration = register_memory(
      gpu, memory->data(), kWordsBytes, CU_MEMHOSTREGISTER_PORTABLE | CU_MEMHOSTREGISTER_DEVICEMAP);
  if (!registration.is_ok()) return registration.status();
  CUdeviceptr address = 0;
  BRAID_RETURN_IF_ERROR(
      gpu.MemHostGetDevicePointer(&address, static_cast<void*>(memory->data()), 0U));
  return Words(std::move(*memory), std::move(*registration), address);
}

uint32_t Words::load(int word) const {
  auto* value = reinterpret_cast<uint32_t*>(memory_.data() + kLine * static_cast<size_t>(word));
  return std::atomic_ref(*value).load(std::memory_order_acquire);
}

void Words::store(int word, uint32_t value) {
  auto* place = reinterpret_cast<uint32_t*>(memory_.data() + kLine * static_cast<size_t>(word));
  std::atomic_ref(*place).store(value, std::memory_order_release);
}

CUdeviceptr Words::address(int word) const { return address_ + kLine * static_cast<size_t>(word); }

}  // namespace braid::gpu_probe
