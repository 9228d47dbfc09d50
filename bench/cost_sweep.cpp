// SPDX-License-Identifier: Apache-2.0
#include "bench/cost_sweep.h"

#include <algorithm>
#include <array>

#include "base/clock.h"

namespace braid::bench {
namespace {

constexpr uint64_t kBytesMin = 1024;
constexpr uint64_t kLargeBytes = 8 << 20;  // from here on fewer times: they take long
constexpr uint32_t kTimes = 5;
constexpr uint32_t kTimesLarge = 2;
constexpr std::array<uint64_t, 3> kConcurrentBytes = {256 << 10, 1 << 20, 4 << 20};

}  // namespace

Result<CostSweep> CostSweep::create(Trainer& trainer, Ranks& ranks, DataType dtype,
                                    const void* memory, uint64_t bytes_max) {
  CostSweep sweep(trainer, ranks, dtype, memory, bytes_max);
  for (uint32_t lane = 0; lane < kLanes; ++lane) {
    const auto tensor = trainer.register_tensor(
        {fmt::format("bench.sweep.{}", lane), static_cast<uint32_t>(dtype), 0, true});
    if (!tensor) return tensor.status();
    sweep.lanes_.push_back(*tensor);
  }
  return sweep;
}

std::vector<uint64_t> CostSweep::sizes(uint64_t bytes_max, size_t element) {
  std::vector<uint64_t> sizes;
  for (uint64_t bytes = kBytesMin; bytes < bytes_max; bytes *= 2) sizes.push_back(bytes);
  // Two sizes are the least that a line can be fitted to.
  while (sizes.size() < 2) sizes.insert(sizes.begin(), std::max<uint64_t>(bytes_max / 2, element));
  sizes.push_back(std::max<uint64_t>(bytes_max, element));
  for (uint64_t& bytes : sizes) bytes -= bytes % element;
  sizes.erase(std::unique(sizes.begin(), sizes.end()), sizes.end());
  return sizes;
}

Status CostSweep::run(std::vector<CostMeasurement>& measurements) {
  std::vector<CostMeasurement> warmup;
  for (const uint64_t bytes : sizes(bytes_max_, element_bytes(dtype_))) {
    BRAID_RETURN_IF_ERROR(measure(bytes, 1, warmup));
    const uint32_t times = bytes < kLargeBytes ? kTimes : kTimesLarge;
    for (uint32_t i = 0; i < times; ++i) BRAID_RETURN_IF_ERROR(measure(bytes, 1, measurements));
  }
  for (const uint64_t bytes : kConcurrentBytes) {
    if (bytes > bytes_max_) break;
    for (uint32_t i = 0; i < kTimes; ++i) {
      BRAID_RETURN_IF_ERROR(measure(bytes, 2, measurements));
      BRAID_RETURN_IF_ERROR(measure(bytes, kLanes, measurements));
    }
  }
  return Status::ok();
}

Status CostSweep::measure(uint64_t bytes, uint32_t concurrent,
                          std::vector<CostMeasurement>& measurements) {
  const SystemClock clock;
  std::array<braid_ticket, kLanes> tickets{};
  BRAID_RETURN_IF_ERROR(ranks_->barrier());
  const uint64_t begin_ns = clock.now_ns();
  braid_operation operation = Trainer::all_reduce(0, step_++, BRAID_SUM, memory_);
  operation.dtype = static_cast<uint32_t>(dtype_);
  operation.count = bytes / element_bytes(dtype_);
  for (uint32_t lane = 0; lane < concurrent; ++lane) {
    operation.tensor = lanes_[lane];
    BRAID_RETURN_IF_ERROR(trainer_->submit(operation, tickets[lane]));
  }
  for (uint32_t lane = 0; lane < concurrent; ++lane)
    BRAID_RETURN_IF_ERROR(trainer_->wait(tickets[lane]));
  // Until the last one: they do not share fairly, and what they get done together is what counts.
  Verdict verdict;
  verdict.seconds = static_cast<double>(clock.now_ns() - begin_ns) / 1e9;
  for (uint32_t lane = 0; lane < concurrent; ++lane)
    BRAID_RETURN_IF_ERROR(trainer_->release(tickets[lane]));
  BRAID_RETURN_IF_ERROR(ranks_->agree(verdict));
  measurements.push_back({bytes, verdict.seconds, concurrent});
  return Status::ok();
}

}  // namespace braid::bench
