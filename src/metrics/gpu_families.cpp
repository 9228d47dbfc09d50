// SPDX-License-Identifier: Apache-2.0
#include "metrics/all_families.h"

namespace braid {
namespace {

// A metric of one GPU, by its index; braid_gpu_info has the rest.
MetricInfo of_gpu(Metric metric, std::string_view name, std::string_view help) {
  return {metric, name, name.ends_with("_total"), {"gpu"}, {}, help};
}

std::vector<MetricInfo> pcie_infos() {
  return {
      of_gpu(Metric::GpuPcieWidth, "braid_gpu_pcie_width_lanes", "Lanes of PCIe in use."),
      of_gpu(Metric::GpuPcieWidthMax, "braid_gpu_pcie_width_max_lanes",
             "Lanes that card and slot have."),
      of_gpu(Metric::GpuPcieGeneration, "braid_gpu_pcie_generation",
             "Generation of PCIe in use; it goes down while the GPU rests."),
      of_gpu(Metric::GpuPcieGenerationMax, "braid_gpu_pcie_generation_max",
             "Generation that card and slot have."),
      of_gpu(Metric::GpuPcieReplays, "braid_gpu_pcie_replays_total",
             "Packets that had to be sent again over PCIe."),
  };
}

std::vector<MetricInfo> reading_infos() {
  return {
      {Metric::GpuInfo,
       "braid_gpu_info",
       false,
       {"gpu", "uuid", "name", "pci", "numa_node", "rails"},
       {},
       "Always 1; the labels say which GPU has this index, where it is, and which rails are "
       "nearest. GPUs have series only where NVIDIA's library is."},
      of_gpu(Metric::GpuUp, "braid_gpu_up",
             "1: the GPU answers; 0: it does not, so it is lost, or the driver refuses."),
      {Metric::GpuSilentSeconds,
       "braid_gpu_silent_seconds",
       false,
       {},
       {},
       "How long NVIDIA's library has not come back from a call, if that is more than 10 s; all "
       "numbers of GPUs are so old then."},
      of_gpu(Metric::GpuClock, "braid_gpu_clock_hertz", "Clock of the multiprocessors now."),
      of_gpu(Metric::GpuClockMax, "braid_gpu_clock_max_hertz",
             "The highest clock that the multiprocessors may have."),
      {Metric::GpuSlowed,
       "braid_gpu_slowed",
       false,
       {"gpu", "reason"},
       {},
       "1: the clock is low for this reason: heat, power_cap, power_brake, hardware, setting or "
       "idle; 0: it is not."},
      of_gpu(Metric::GpuTemperature, "braid_gpu_temperature_celsius", "Temperature of the GPU."),
      of_gpu(Metric::GpuPower, "braid_gpu_power_watts", "Power that the card takes."),
      of_gpu(Metric::GpuPowerLimit, "braid_gpu_power_limit_watts",
             "Power that the card may take; above it the clock goes down."),
      of_gpu(Metric::GpuUtilization, "braid_gpu_utilization_ratio",
             "Share of the latest second in which something computed."),
      of_gpu(Metric::GpuMemoryUsed, "braid_gpu_memory_used_bytes", "Memory of the GPU in use."),
      of_gpu(Metric::GpuMemory, "braid_gpu_memory_bytes", "Memory of the GPU."),
      {Metric::GpuEccErrors,
       "braid_gpu_ecc_errors_total",
       true,
       {"gpu", "kind"},
       {},
       "Memory errors since the driver was loaded: corrected, uncorrected."},
      of_gpu(Metric::GpuXidErrors, "braid_gpu_xid_errors_total",
             "Xid errors that the driver has reported since the daemon started; the log and "
             "`braidctl status` have their numbers."),
  };
}

std::vector<MetricInfo> process_infos() {
  return {
      of_gpu(Metric::GpuProcesses, "braid_gpu_processes", "Processes that compute on the GPU."),
      {Metric::JobRankGpu,
       "braid_job_rank_gpu",
       false,
       {"training_job", "rank", "gpu"},
       {},
       "Always 1: the rank's process computes on this GPU."},
  };
}

}  // namespace

std::vector<MetricInfo> gpu_infos() {
  std::vector<MetricInfo> all;
  for (const auto& infos : {reading_infos(), pcie_infos(), process_infos()})
    all.insert(all.end(), infos.begin(), infos.end());
  return all;
}

}  // namespace braid
