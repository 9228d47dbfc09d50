// SPDX-License-Identifier: Apache-2.0
#include "device/staging_pool.h"

#include <algorithm>

#include "base/checked.h"

namespace braid::client {
namespace {

constexpr uint64_t kBufferAlignment = 256;
constexpr uint64_t kPoolSlabBytesMin = 1 << 20;
constexpr uint64_t kPoolSlabBytesMax = 64 << 20;

}  // namespace

StagingPool::Buffer::Buffer(Buffer&& other) noexcept { *this = std::move(other); }

StagingPool::Buffer& StagingPool::Buffer::operator=(Buffer&& other) noexcept {
  if (pool_ != nullptr) pool_->give_back(*this);
  pool_ = std::exchange(other.pool_, nullptr);
  memory_ = std::exchange(other.memory_, nullptr);
  bytes_ = other.bytes_;
  slab_ = other.slab_;
  return *this;
}

StagingPool::Buffer::~Buffer() {
  if (pool_ != nullptr) pool_->give_back(*this);
}

Status StagingPool::take(uint64_t bytes, Buffer& buffer) {
  bytes = std::max(round_up(bytes, kBufferAlignment), kBufferAlignment);
  std::optional<Buffer> taken = take_there(bytes);
  if (!taken) {
    Slab slab;
    {
      const std::lock_guard lock(mutex_);
      for (const Slab& other : slabs_) slab.bytes += other.bytes;
    }
    slab.bytes = std::max(bytes, std::clamp(slab.bytes, kPoolSlabBytesMin, kPoolSlabBytesMax));
    BRAID_RETURN_IF_ERROR(make_(slab.bytes, slab.memory));
    const std::lock_guard lock(mutex_);
    slabs_.push_back(slab);
    taken = take_from_slab(bytes);
  }
  buffer = std::move(*taken);
  return {};
}

std::optional<StagingPool::Buffer> StagingPool::take_there(uint64_t bytes) {
  const std::lock_guard lock(mutex_);
  std::optional<Buffer> taken = take_free(bytes);
  return taken ? std::move(taken) : take_from_slab(bytes);
}

std::optional<StagingPool::Buffer> StagingPool::take_free(uint64_t bytes) {
  const auto found = free_.find(bytes);
  if (found == free_.end()) return std::nullopt;
  const auto [memory, slab] = found->second;
  free_.erase(found);
  ++slabs_[slab].buffers;
  return Buffer(*this, memory, bytes, slab);
}

std::optional<StagingPool::Buffer> StagingPool::take_from_slab(uint64_t bytes) {
  for (size_t i = 0; i < slabs_.size(); ++i) {
    Slab& slab = slabs_[i];
    // Nobody uses it, and what it was cut into does not fit: it is cut anew.
    if (slab.buffers == 0 && slab.filled != 0 && slab.bytes >= bytes) forget_free(i);
    if (slab.bytes - slab.filled < bytes) continue;
    uint8_t* const memory = slab.memory + slab.filled;
    slab.filled += bytes;
    ++slab.buffers;
    return Buffer(*this, memory, bytes, i);
  }
  return std::nullopt;
}

void StagingPool::give_back(const Buffer& buffer) {
  const std::lock_guard lock(mutex_);
  --slabs_[buffer.slab_].buffers;
  free_.emplace(buffer.bytes_, std::pair(buffer.memory_, buffer.slab_));
}

void StagingPool::forget_free(size_t slab) {
  std::erase_if(free_, [&](const auto& entry) { return entry.second.second == slab; });
  slabs_[slab].filled = 0;
}

}  // namespace braid::client
