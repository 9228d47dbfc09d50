// SPDX-License-Identifier: Apache-2.0
#include "braidctl/gpu_view.h"

#include <map>
#include <set>
#include <vector>

#include <fmt/ranges.h>

#include "base/amount.h"
#include "base/printable.h"
#include "braidctl/status_view.h"
#include "braidctl/text_table.h"

namespace braid {
namespace {

constexpr const char* kNotKnown = "-";

std::string clock_text(const GpuFacts& gpu) {
  if (gpu.clock_mhz == 0) return kNotKnown;
  return gpu.clock_max_mhz == 0 ? fmt::format("{} MHz", gpu.clock_mhz)
                                : fmt::format("{} of {} MHz", gpu.clock_mhz, gpu.clock_max_mhz);
}

std::string memory_text(const GpuFacts& gpu) {
  if (gpu.memory_bytes == 0) return kNotKnown;
  return fmt::format("{} of {}", format_amount(gpu.memory_used_bytes),
                     format_amount(gpu.memory_bytes));
}

std::string joined(const std::vector<std::string>& texts) {
  std::vector<std::string> printed;
  printed.reserve(texts.size());
  for (const std::string& text : texts) printed.push_back(printable(text));
  return printed.empty() ? kNotKnown : fmt::format("{}", fmt::join(printed, ", "));
}

std::string reasons_text(const GpuFacts& gpu) {
  std::vector<std::string> names;
  for (const GpuFacts::Reason& reason : gpu.reasons) names.push_back(reason.name);
  return joined(names);
}

// "train 0-1, and 2 others"
std::string processes_text(const GpuFacts& gpu) {
  std::map<std::string, std::vector<uint32_t>> ranks;
  for (const GpuFacts::Process& process : gpu.processes) ranks[process.job].push_back(process.rank);
  std::vector<std::string> texts;
  texts.reserve(ranks.size() + 1);
  for (auto& [job, of_job] : ranks)
    texts.push_back(fmt::format("{} {}", job, format_ranks(std::move(of_job))));
  if (gpu.other_processes != 0) {
    texts.push_back(
        fmt::format("{} {}", gpu.other_processes, gpu.other_processes == 1 ? "other" : "others"));
  }
  return joined(texts);
}

std::vector<std::string> row_of(const GpuFacts& gpu) {
  const std::string index = std::to_string(gpu.index);
  const std::string place = gpu.numa_node < 0 ? kNotKnown : std::to_string(gpu.numa_node);
  if (!gpu.error.empty()) {
    return {index,
            printable(gpu.name),
            kNotKnown,
            kNotKnown,
            kNotKnown,
            kNotKnown,
            kNotKnown,
            place,
            joined(gpu.near_rails),
            processes_text(gpu)};
  }
  return {index,
          printable(gpu.name),
          clock_text(gpu),
          reasons_text(gpu),
          gpu.temperature_celsius < 0 ? kNotKnown : std::to_string(gpu.temperature_celsius),
          gpu.utilization < 0 ? kNotKnown : fmt::format("{:.0f} %", gpu.utilization * 100),
          memory_text(gpu),
          place,
          joined(gpu.near_rails),
          processes_text(gpu)};
}

std::vector<std::string> troubles_of(const GpuFacts& gpu) {
  std::vector<std::string> troubles;
  if (!gpu.error.empty()) troubles.push_back(fmt::format("does not answer: {}", gpu.error));
  for (const GpuFacts::Reason& reason : gpu.reasons) {
    if (reason.name == kSlowedByIdleness) continue;
    troubles.push_back(fmt::format("its clock is low since {}: {}",
                                   gpu.format_time_of(reason.since), reason.name));
  }
  if (gpu.last_xid_at != 0) {
    const std::string_view meaning = xid_meaning(gpu.last_xid);
    troubles.push_back(fmt::format("Xid {} at {}{}{}; {} since the daemon started", gpu.last_xid,
                                   gpu.format_time_of(gpu.last_xid_at), meaning.empty() ? "" : ": ",
                                   meaning, gpu.xid_errors));
  }
  if (gpu.ecc_uncorrected > 0) {
    troubles.push_back(fmt::format(
        "{} uncorrectable memory errors since its driver was loaded{}", gpu.ecc_uncorrected,
        gpu.ecc_uncorrected_at == 0
            ? ""
            : ", the latest at " + gpu.format_time_of(gpu.ecc_uncorrected_at)));
  }
  if (gpu.pcie_width != 0 && gpu.pcie_width < gpu.pcie_width_max) {
    troubles.push_back(
        fmt::format("uses {} of {} lanes of PCIe", gpu.pcie_width, gpu.pcie_width_max));
  }
  return troubles;
}

}  // namespace

std::string render_gpus(const DaemonStatus& status) {
  if (status.gpus.empty() && status.gpus_silent_seconds == 0) return {};
  std::vector<std::vector<std::string>> rows = {
      {"GPU", "NAME", "CLOCK", "LOW FOR", "CELSIUS", "BUSY", "MEMORY", "NUMA", "NEAREST", "RANKS"}};
  std::string troubles;
  for (const GpuFacts& gpu : status.gpus) {
    rows.push_back(row_of(gpu));
    for (const std::string& trouble : troubles_of(gpu))
      troubles += fmt::format("  GPU {}: {}\n", gpu.index, printable(trouble));
  }
  if (status.gpus_silent_seconds > 0) {
    troubles += fmt::format(
        "  NVIDIA's library has not answered for {:.0f} s: what stands here is so old\n",
        status.gpus_silent_seconds);
  }
  return render_table(rows) + troubles + "\n";
}

}  // namespace braid
