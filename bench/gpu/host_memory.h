// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>

#include "base/fd.h"
#include "bench/gpu/handles.h"

namespace braid::gpu_probe {

enum class Pages : uint8_t { Small, Huge };

// A memfd that is mapped, as braid's arenas are, at a multiple of a huge page. All of it is
// touched. Move-only.
class SharedMemory {
 public:
  static Result<SharedMemory> make(size_t bytes, Pages pages);
  SharedMemory(SharedMemory&& other) noexcept;
  SharedMemory& operator=(SharedMemory&&) = delete;
  ~SharedMemory();

  char* data() const { return data_; }
  size_t bytes() const { return bytes_; }
  int fd() const { return fd_.get(); }
  // The kernel may have given small pages only.
  bool has_huge_pages() const { return has_huge_pages_; }

 private:
  SharedMemory() = default;

  Fd fd_;
  void* reserved_ = nullptr;
  size_t reserved_bytes_ = 0;
  char* data_ = nullptr;
  size_t bytes_ = 0;
  bool has_huge_pages_ = false;
};

inline Status unregister_memory(const Gpu& gpu, void* data) { return gpu.MemHostUnregister(data); }
using Registration = Owned<void*, unregister_memory>;

Result<Registration> register_memory(const Gpu& gpu, void* data, size_t bytes,
                                     unsigned flags = CU_MEMHOSTREGISTER_PORTABLE);

// Words that GPU and host both read and write, a cache line each. The host's reads and writes are
// atomic.
class Words {
 public:
  static constexpr int kCount = 8;

  static Result<Words> make(const Gpu& gpu);

  uint32_t load(int word) const;
  void store(int word, uint32_t value);
  CUdeviceptr address(int word) const;

 private:
  Words(SharedMemory memory, Registration registration, CUdeviceptr address)
      : memory_(std::move(memory)), registration_(std::move(registration)), address_(address) {}

  SharedMemory memory_;
  Registration registration_;  // before the memory goes
  CUdeviceptr address_;
};

}  // namespace braid::gpu_probe
