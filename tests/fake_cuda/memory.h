// SPDX-License-Identifier: Apache-2.0
// Device memory and registered host memory: which addresses are valid, and every access of the GPU
// to them.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <shared_mutex>

#include <cuda.h>

namespace fake_cuda {

/// Where bytes are. Device memory and registered memory are looked up again at each access.
struct Side {
  std::uintptr_t address;
  bool is_checked;  // false: host memory that is not registered
};

/// A part of device memory, or a part of the process's memory that is registered.
struct Range {
  std::uintptr_t begin = 0;  // of the whole allocation or registration
  std::size_t bytes = 0;
  int device = 0;
  bool is_device = false;
  unsigned flags = 0;            // of the registration
  std::byte* library = nullptr;  // where the library touches `begin`
  std::uint64_t id = 0;          // unique in the process
};

/// All memory of the process that GPUs may touch. It is never destroyed. Any thread may call it.
/// Accesses go in parts; between two parts memory may be given back, and then the next part fails
/// with CUDA_ERROR_ILLEGAL_ADDRESS.
class Memory {
 public:
  static Memory& get();

  CUresult allocate(int device, std::size_t bytes, CUdeviceptr& address);
  CUresult free(CUdeviceptr address);
  /// The pages are taken in, as the driver pins them.
  CUresult register_host(int device, void* address, std::size_t bytes, unsigned flags);
  CUresult unregister_host(void* address);
  /// Gives back what a context had that ends.
  void forget(int device);

  /// The allocation or registration that holds the whole of these bytes.
  std::optional<Range> find(std::uintptr_t address, std::size_t bytes) const;
  /// True if these bytes touch one.
  bool touches(std::uintptr_t address, std::size_t bytes) const;

  CUresult copy(Side to, Side from, std::size_t bytes);
  CUresult fill(std::uintptr_t address, unsigned char value, std::size_t bytes);
  /// What was copied before is seen by who sees the word, and the other way round.
  CUresult load_word(std::uintptr_t address, std::uint32_t& value);
  CUresult store_word(std::uintptr_t address, std::uint32_t value);

  std::uint64_t allocations() const;
  std::uint64_t allocated_bytes() const;
  std::uint64_t registrations() const;
  std::uint64_t registered_bytes() const;
  std::uint64_t missing_pages() const { return missing_pages_.load(); }

 private:
  using Ranges = std::map<std::uintptr_t, Range>;  // by their ends

  Memory() = default;
  const Range* find_locked(std::uintptr_t address, std::size_t bytes) const;
  /// Null if the bytes are not valid now, or pages of them are missing.
  std::byte* bytes_locked(Side place, std::size_t bytes, bool is_written);

  mutable std::shared_mutex mutex_;  // shared: the GPU accesses; alone: the ranges change
  Ranges device_, host_;
  std::uint64_t last_id_ = 0;
  std::atomic<std::uint64_t> missing_pages_ = 0;
};

}  // namespace fake_cuda
