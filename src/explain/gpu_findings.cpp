// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/log_text.h"
#include "explain/findings.h"

namespace braid {
namespace {

constexpr size_t kGpusOfCauseMax = 3;
// Errors that are older are not this job's present trouble.
constexpr uint64_t kErrorSeconds = 3600;
// A clock that is higher costs nothing worth to be spoken of: in shares of the highest one.
constexpr double kSlowClock = 0.95;
// Power caps are usual. One counts where the clock is lower than this share of the other ranks'
// clocks, or than the second one of the highest clock.
constexpr double kSlowBesideOthers = 0.95;
constexpr double kVerySlowClock = 0.75;
// PCIe goes to a lower generation while a GPU rests.
constexpr double kBusy = 0.2;
// A forward pass takes about half as long as backward.
constexpr double kComputeOfBackward = 1.5;

// A GPU on which ranks of the job compute, or may.
struct JobGpu {
  const NodeFacts* node = nullptr;
  const GpuFacts* gpu = nullptr;
  std::vector<uint32_t> ranks;  // empty: it is not known which
  double late_seconds = 0;      // in each step, of these ranks; 0: they are not late

  double clock_share() const {
    if (gpu->clock_mhz == 0 || gpu->clock_max_mhz == 0) return 1;
    return static_cast<double>(gpu->clock_mhz) / gpu->clock_max_mhz;
  }
};

// How late its ranks are, in each step.
double lateness_of(const JobGpu& gpu, const Findings& findings) {
  double late = 0;
  for (const Finding& finding : findings) {
    if (finding.cause != Cause::LateRank || !finding.rank || finding.node != gpu.node->node)
      continue;
    if (std::ranges::find(gpu.ranks, *finding.rank) != gpu.ranks.end())
      late = std::max(late, finding.seconds_per_step);
  }
  return late;
}

void add_gpus_of(const NodeFacts& node, const Findings& findings, std::vector<JobGpu>& gpus) {
  std::set<uint32_t> unplaced(node.ranks.begin(), node.ranks.end());
  for (const GpuFacts& gpu : node.gpus) {
    for (const GpuFacts::Process& process : gpu.processes) unplaced.erase(process.rank);
  }
  for (const GpuFacts& gpu : node.gpus) {
    JobGpu one{&node, &gpu, {}};
    for (const GpuFacts::Process& process : gpu.processes) one.ranks.push_back(process.rank);
    // Whose it is may be unknown, as with containers that have PID namespaces of their own.
    const bool may_be_ours = !unplaced.empty() && (gpu.other_processes != 0 || !gpu.error.empty());
    if (one.ranks.empty() && !may_be_ours) continue;
    std::ranges::sort(one.ranks);
    one.late_seconds = lateness_of(one, findings);
    gpus.push_back(std::move(one));
  }
}

std::string subject(const JobGpu& gpu) {
  if (gpu.ranks.empty()) {
    return fmt::format("GPU {} of {} (which rank computes on it is not known)", gpu.gpu->index,
                       gpu.node->node);
  }
  if (gpu.ranks.size() == 1)
    return fmt::format("Rank {}'s GPU ({} of {})", gpu.ranks[0], gpu.gpu->index, gpu.node->node);
  return fmt::format("The GPU of ranks {} ({} of {})", fmt::join(gpu.ranks, ", "), gpu.gpu->index,
                     gpu.node->node);
}

Finding about(Cause cause, const JobGpu& gpu, double cost) {
  Finding finding{cause, {}, {}, cost, gpu.node->node, {}};
  if (gpu.ranks.size() == 1) finding.rank = gpu.ranks[0];
  return finding;
}

// "1,140 of 1,980 MHz since 12:03 UTC"
std::string clock_text(const GpuFacts& gpu, const GpuFacts::Reason& reason) {
  return fmt::format("{} of {} MHz since {}", grouped(gpu.clock_mhz), grouped(gpu.clock_max_mhz),
                     gpu.format_time_of(reason.since));
}

std::optional<Finding> lost(const JobGpu& gpu) {
  if (gpu.gpu->error.empty()) return std::nullopt;
  Finding finding = about(Cause::GpuLost, gpu, 0);
  finding.text = fmt::format("{} does not answer: {}", subject(gpu), gpu.gpu->error);
  finding.advice = fmt::format(
      "take {} out of service until the GPU is reset (nvidia-smi --gpu-reset) or the node "
      "restarted; the kernel's log says what happened (dmesg | grep Xid)",
      gpu.node->node);
  return finding;
}

bool is_recent(const GpuFacts& gpu, uint64_t at) {
  return at != 0 && at + kErrorSeconds >= gpu.read_at;
}

std::optional<Finding> xid(const JobGpu& gpu) {
  const GpuFacts& facts = *gpu.gpu;
  if (!is_recent(facts, facts.last_xid_at) || is_xid_of_program(facts.last_xid))
    return std::nullopt;
  const std::string_view meaning = xid_meaning(facts.last_xid);
  Finding finding = about(Cause::GpuXid, gpu, 0);
  finding.text =
      fmt::format("{} reported Xid {} at {}{}{}", subject(gpu), facts.last_xid,
                  facts.format_time_of(facts.last_xid_at), meaning.empty() ? "" : ": ", meaning);
  finding.advice =
      fmt::format("NVIDIA's list of Xid errors says what to do about each; on {}: dmesg | grep Xid",
                  gpu.node->node);
  return finding;
}

std::optional<Finding> ecc(const JobGpu& gpu) {
  const GpuFacts& facts = *gpu.gpu;
  if (!is_recent(facts, facts.ecc_uncorrected_at)) return std::nullopt;
  Finding finding = about(Cause::GpuEcc, gpu, 0);
  finding.text = fmt::format(
      "{} had an uncorrectable memory error at {} ({} since its driver was loaded)", subject(gpu),
      facts.format_time_of(facts.ecc_uncorrected_at), facts.ecc_uncorrected);
  finding.advice =
      "what it computed then may be wrong: go back to an earlier checkpoint; nvidia-smi -q -d "
      "ECC,ROW_REMAPPER says whether the GPU must be reset or replaced";
  return finding;
}

// What all GPUs of the job together say of a slow one.
struct Fleet {
  double usual_clock_share = 1;  // median
  // What a step would take less if all GPUs had their highest clocks: 0 if some have.
  double common_seconds = 0;

  // What a low clock costs: a late rank holds up all others, one of many slow ones does not.
  double cost(const JobGpu& gpu) const {
    return gpu.late_seconds > 0 ? gpu.late_seconds : common_seconds;
  }
  bool is_slow_beside_others(const JobGpu& gpu) const {
    return gpu.clock_share() < kSlowBesideOthers * usual_clock_share ||
           gpu.clock_share() < kVerySlowClock;
  }
};

Fleet look_at_all(const Evidence& evidence, const std::vector<JobGpu>& gpus) {
  Fleet fleet;
  std::vector<double> shares;
  std::set<uint32_t> ranks;
  for (const JobGpu& gpu : gpus) {
    if (gpu.ranks.empty() || gpu.gpu->clock_mhz == 0) continue;
    shares.push_back(gpu.clock_share());
    ranks.insert(gpu.ranks.begin(), gpu.ranks.end());
  }
  if (shares.empty()) return fleet;
  fleet.usual_clock_share = median(shares);
  const double highest = *std::ranges::max_element(shares);
  if (highest >= kSlowClock || ranks.size() < evidence.view.ranks.size()) return fleet;
  std::vector<double> backwards;
  for (const RankView& rank : evidence.view.ranks) backwards.push_back(median(rank.backward));
  const double compute =
      std::min(kComputeOfBackward * median(std::move(backwards)), evidence.step_seconds);
  const double gain = (1 - highest) * compute;
  if (is_worth(gain, evidence.step_seconds)) fleet.common_seconds = gain;
  return fleet;
}

std::optional<Finding> heat(const JobGpu& gpu, const Fleet& fleet) {
  const GpuFacts::Reason* reason = gpu.gpu->find_reason(kSlowedByHeat);
  if (reason == nullptr || gpu.clock_share() >= kSlowClock) return std::nullopt;
  Finding finding = about(Cause::GpuHeat, gpu, fleet.cost(gpu));
  finding.text =
      fmt::format("{} is slowed down by heat: {}", subject(gpu), clock_text(*gpu.gpu, *reason));
  if (gpu.gpu->temperature_celsius >= 0)
    finding.text += fmt::format(", at {} °C", gpu.gpu->temperature_celsius);
  finding.advice = fmt::format("look at the fans, the filters and the air of {}", gpu.node->node);
  return finding;
}

std::optional<Finding> power(const JobGpu& gpu, const Fleet& fleet) {
  const GpuFacts& facts = *gpu.gpu;
  const GpuFacts::Reason* brake = facts.find_reason(kSlowedByPowerBrake);
  const GpuFacts::Reason* cap = facts.find_reason(kSlowedByPowerCap);
  if (gpu.clock_share() >= kSlowClock) return std::nullopt;
  if (brake == nullptr && (cap == nullptr || !fleet.is_slow_beside_others(gpu)))
    return std::nullopt;
  Finding finding = about(Cause::GpuPower, gpu, fleet.cost(gpu));
  finding.text = fmt::format("{} is slowed down by {}: {}", subject(gpu),
                             brake != nullptr ? "a power brake" : "its power cap",
                             clock_text(facts, brake != nullptr ? *brake : *cap));
  if (facts.power_limit_watts > 0) {
    finding.text +=
        fmt::format(", at {:.0f} of {:.0f} W", facts.power_watts, facts.power_limit_watts);
  }
  finding.advice =
      brake != nullptr
          ? fmt::format("the power supply of {} asks for it: look at that", gpu.node->node)
          : "compare its limit with the other GPUs' (nvidia-smi -q -d POWER); nvidia-smi -pl "
            "raises it";
  return finding;
}

std::optional<Finding> slowdown(const JobGpu& gpu, const Fleet& fleet) {
  const GpuFacts::Reason* hardware = gpu.gpu->find_reason(kSlowedByHardware);
  const GpuFacts::Reason* setting = gpu.gpu->find_reason(kSlowedBySetting);
  if (gpu.clock_share() >= kSlowClock) return std::nullopt;
  if (hardware == nullptr && (setting == nullptr || !fleet.is_slow_beside_others(gpu)))
    return std::nullopt;
  Finding finding = about(Cause::GpuSlowdown, gpu, fleet.cost(gpu));
  finding.text = fmt::format("{} is slowed down by {}: {}", subject(gpu),
                             hardware != nullptr ? "its hardware" : "clocks that somebody has set",
                             clock_text(*gpu.gpu, hardware != nullptr ? *hardware : *setting));
  finding.advice = hardware != nullptr
                       ? "nvidia-smi -q -d PERFORMANCE says what the hardware gives as its reason"
                       : "nvidia-smi --reset-gpu-clocks and --reset-applications-clocks take them "
                         "back";
  return finding;
}

std::optional<Finding> pcie(const JobGpu& gpu) {
  const GpuFacts& facts = *gpu.gpu;
  const bool is_narrow = facts.pcie_width != 0 && facts.pcie_width < facts.pcie_width_max;
  const bool is_low = facts.utilization >= kBusy && facts.pcie_generation != 0 &&
                      facts.pcie_generation < facts.pcie_generation_max;
  if (!is_narrow && !is_low) return std::nullopt;
  // What copies take of a step is not known.
  Finding finding = about(Cause::GpuPcie, gpu, 0);
  finding.text = is_narrow
                     ? fmt::format("{} uses {} of {} lanes of PCIe", subject(gpu), facts.pcie_width,
                                   facts.pcie_width_max)
                     : fmt::format("{} uses PCIe of generation {}, and could use generation {}",
                                   subject(gpu), facts.pcie_generation, facts.pcie_generation_max);
  finding.advice =
      "its copies take so much longer: look at the slot and the riser, and at the BIOS";
  return finding;
}

std::optional<Finding> shared(const JobGpu& gpu) {
  const uint32_t others = gpu.gpu->other_processes;
  if (others == 0 || gpu.late_seconds == 0) return std::nullopt;
  Finding finding = about(Cause::GpuShared, gpu, gpu.late_seconds);
  finding.text = fmt::format("{} is shared with {} other {}", subject(gpu), others,
                             others == 1 ? "process" : "processes");
  finding.advice = fmt::format("nvidia-smi on {} shows who else computes on GPU {}", gpu.node->node,
                               gpu.gpu->index);
  return finding;
}

// The costliest of one cause, and how many more there are.
void add_some(Findings found, Findings& all) {
  std::ranges::stable_sort(found, std::ranges::greater(), &Finding::seconds_per_step);
  if (found.size() > kGpusOfCauseMax) {
    found[kGpusOfCauseMax - 1].text +=
        fmt::format("; {} more GPUs of the job have the same", found.size() - kGpusOfCauseMax);
    found.resize(kGpusOfCauseMax);
  }
  all.insert(all.end(), found.begin(), found.end());
}

template <typename Look>
void look_for(const std::vector<JobGpu>& gpus, Look look, Findings& all) {
  Findings found;
  for (const JobGpu& gpu : gpus) {
    if (auto finding = look(gpu)) found.push_back(std::move(*finding));
  }
  add_some(std::move(found), all);
}

}  // namespace

void find_gpus(const Evidence& evidence, Findings& findings) {
  std::vector<JobGpu> gpus;
  for (const NodeFacts& node : evidence.after.nodes) add_gpus_of(node, findings, gpus);
  if (gpus.empty()) return;
  const Fleet fleet = look_at_all(evidence, gpus);
  const auto with = [&fleet](auto look) {
    return [look, &fleet](const JobGpu& gpu) { return look(gpu, fleet); };
  };
  Findings found;
  look_for(gpus, lost, found);
  look_for(gpus, xid, found);
  look_for(gpus, ecc, found);
  look_for(gpus, with(heat), found);
  look_for(gpus, with(power), found);
  look_for(gpus, with(slowdown), found);
  look_for(gpus, shared, found);
  look_for(gpus, pcie, found);
  // Before the late ranks that they explain: of what costs the same, the first one is told first.
  findings.insert(findings.begin(), found.begin(), found.end());
}

}  // namespace braid
