// SPDX-License-Identifier: Apache-2.0
#include "metrics/gpu_samples.h"

#include <array>

#include <fmt/ranges.h>

namespace braid {
namespace {

constexpr std::array<std::string_view, 6> kReasons = {kSlowedByHeat,       kSlowedByPowerCap,
                                                      kSlowedByPowerBrake, kSlowedByHardware,
                                                      kSlowedBySetting,    kSlowedByIdleness};

// The samples of one GPU.
class GpuSamples {
 public:
  GpuSamples(const GpuFacts& gpu, std::vector<MetricSample>& samples)
      : gpu_(gpu), index_(std::to_string(gpu.index)), samples_(samples) {}

  void add_all() {
    const std::string numa_node = gpu_.numa_node < 0 ? "" : std::to_string(gpu_.numa_node);
    samples_.push_back({Metric::GpuInfo,
                        {index_, gpu_.uuid, gpu_.name, gpu_.pci, numa_node,
                         fmt::format("{}", fmt::join(gpu_.near_rails, ","))},
                        1});
    add(Metric::GpuUp, gpu_.error.empty() ? 1 : 0);
    add(Metric::GpuXidErrors, static_cast<double>(gpu_.xid_errors));
    if (gpu_.error.empty()) add_reading();
  }

 private:
  void add(Metric metric, double value) { samples_.push_back({metric, {index_}, value}); }
  void add_if(bool is_known, Metric metric, double value) {
    if (is_known) add(metric, value);
  }
  void add_positive(Metric metric, double value) { add_if(value > 0, metric, value); }

  void add_reading() {
    constexpr double kHertz = 1e6;  // of a megahertz
    add_positive(Metric::GpuClock, gpu_.clock_mhz * kHertz);
    add_positive(Metric::GpuClockMax, gpu_.clock_max_mhz * kHertz);
    for (const std::string_view reason : kReasons) {
      samples_.push_back({Metric::GpuSlowed,
                          {index_, std::string(reason)},
                          gpu_.find_reason(reason) == nullptr ? 0.0 : 1.0});
    }
    add_if(gpu_.temperature_celsius >= 0, Metric::GpuTemperature, gpu_.temperature_celsius);
    add_positive(Metric::GpuPower, gpu_.power_watts);
    add_positive(Metric::GpuPowerLimit, gpu_.power_limit_watts);
    add_if(gpu_.utilization >= 0, Metric::GpuUtilization, gpu_.utilization);
    if (gpu_.memory_bytes != 0) {
      add(Metric::GpuMemoryUsed, static_cast<double>(gpu_.memory_used_bytes));
      add(Metric::GpuMemory, static_cast<double>(gpu_.memory_bytes));
    }
    add_ecc("corrected", gpu_.ecc_corrected);
    add_ecc("uncorrected", gpu_.ecc_uncorrected);
    add_positive(Metric::GpuPcieWidth, gpu_.pcie_width);
    add_positive(Metric::GpuPcieWidthMax, gpu_.pcie_width_max);
    add_positive(Metric::GpuPcieGeneration, gpu_.pcie_generation);
    add_positive(Metric::GpuPcieGenerationMax, gpu_.pcie_generation_max);
    add_if(gpu_.pcie_replays >= 0, Metric::GpuPcieReplays, static_cast<double>(gpu_.pcie_replays));
    add(Metric::GpuProcesses, static_cast<double>(gpu_.processes.size()));
  }

  void add_ecc(const char* kind, int64_t errors) {
    if (errors < 0) return;
    samples_.push_back({Metric::GpuEccErrors, {index_, kind}, static_cast<double>(errors)});
  }

  const GpuFacts& gpu_;
  const std::string index_;
  std::vector<MetricSample>& samples_;
};

}  // namespace

std::vector<MetricSample> gpu_samples(const std::vector<GpuFacts>& gpus) {
  std::vector<MetricSample> samples;
  for (const GpuFacts& gpu : gpus) GpuSamples(gpu, samples).add_all();
  return samples;
}

}  // namespace braid
