// SPDX-License-Identifier: Apache-2.0
#include "gpu/gpu_history.h"

#include <algorithm>

#include <fmt/format.h>

namespace braid {
namespace {

constexpr const char* kListedNoMore = "the driver lists it no more";

// What stays so while a GPU does not answer.
void take_identity(GpuFacts& facts, const GpuFacts& before) {
  facts.name = before.name;
  facts.uuid = before.uuid;
  facts.pci = before.pci;
  facts.numa_node = before.numa_node;
  facts.near_rails = before.near_rails;
}

}  // namespace

std::vector<GpuFacts> GpuHistory::complete(GpuReader::Reading reading, uint64_t now,
                                           std::vector<std::string>& news) {
  for (GpuFacts& facts : reading.gpus) {
    Gpu& gpu = find(facts);
    facts.read_at = now;
    if (facts.uuid.empty()) take_identity(facts, gpu.facts);
    // Who has computed on a GPU that is lost still hangs on it.
    if (!facts.error.empty()) facts.processes = gpu.facts.processes;
    keep_reasons(gpu, facts, now, news);
    keep_errors(gpu, facts, now, news);
    for (const GpuReader::Xid& xid : reading.xids) {
      if (xid.gpu != facts.index) continue;
      ++facts.xid_errors;
      facts.last_xid = xid.number;
      facts.last_xid_at = now;
      const std::string_view meaning = xid_meaning(xid.number);
      news.push_back(fmt::format("{} reports Xid {}{}{}", describe_gpu(facts), xid.number,
                                 meaning.empty() ? "" : ": ", meaning));
    }
    gpu.facts = facts;
  }
  for (Gpu& gpu : gpus_) {
    if (std::ranges::any_of(reading.gpus, [&](const GpuFacts& facts) {
          return facts.uuid == gpu.facts.uuid && facts.index == gpu.facts.index;
        }))
      continue;
    GpuFacts facts;
    facts.index = gpu.facts.index;
    take_identity(facts, gpu.facts);
    facts.read_at = now;
    facts.processes = gpu.facts.processes;
    facts.error = kListedNoMore;
    keep_errors(gpu, facts, now, news);
    gpu.facts = facts;
    reading.gpus.push_back(std::move(facts));
  }
  std::ranges::stable_sort(reading.gpus, {}, &GpuFacts::index);
  return std::move(reading.gpus);
}

// By its UUID; where one is not told, by its place.
GpuHistory::Gpu& GpuHistory::find(const GpuFacts& facts) {
  const auto found = std::ranges::find_if(gpus_, [&](const Gpu& gpu) {
    const bool is_unnamed = facts.uuid.empty() || gpu.facts.uuid.empty();
    return is_unnamed ? gpu.facts.index == facts.index : gpu.facts.uuid == facts.uuid;
  });
  if (found != gpus_.end()) return *found;
  Gpu& gpu = gpus_.emplace_back();
  gpu.facts = facts;
  gpu.facts.error.clear();  // or nobody would be told of it
  return gpu;
}

void GpuHistory::keep_reasons(Gpu& gpu, GpuFacts& facts, uint64_t now,
                              std::vector<std::string>& news) {
  for (GpuFacts::Reason& reason : facts.reasons) {
    const auto seen = std::ranges::find(gpu.reasons, reason.name,
                                        [](const SeenReason& one) { return one.reason.name; });
    if (seen != gpu.reasons.end() && now < seen->last_at + kBreakSeconds) {
      reason.since = seen->reason.since;
      seen->last_at = now;
      continue;
    }
    reason.since = now;
    if (seen != gpu.reasons.end()) gpu.reasons.erase(seen);
    gpu.reasons.push_back({reason, now});
    if (reason.name != kSlowedByHeat && reason.name != kSlowedByHardware &&
        reason.name != kSlowedByPowerBrake)
      continue;  // usual under load, or meant
    news.push_back(fmt::format("{} is slowed down by {}: {} of {} MHz, {} °C", describe_gpu(facts),
                               reason.name, facts.clock_mhz, facts.clock_max_mhz,
                               facts.temperature_celsius));
  }
}

void GpuHistory::keep_errors(Gpu& gpu, GpuFacts& facts, uint64_t now,
                             std::vector<std::string>& news) {
  facts.ecc_uncorrected_at = gpu.facts.ecc_uncorrected_at;
  facts.xid_errors = gpu.facts.xid_errors;
  facts.last_xid = gpu.facts.last_xid;
  facts.last_xid_at = gpu.facts.last_xid_at;
  if (gpu.ecc_uncorrected >= 0 && facts.ecc_uncorrected > gpu.ecc_uncorrected) {
    facts.ecc_uncorrected_at = now;
    news.push_back(fmt::format("{} has {} uncorrectable memory errors, {} of them new",
                               describe_gpu(facts), facts.ecc_uncorrected,
                               facts.ecc_uncorrected - gpu.ecc_uncorrected));
  }
  if (facts.ecc_uncorrected >= 0) gpu.ecc_uncorrected = facts.ecc_uncorrected;
  if (facts.error == gpu.facts.error) return;
  news.push_back(facts.error.empty()
                     ? fmt::format("{} answers again", describe_gpu(facts))
                     : fmt::format("{} does not answer: {}", describe_gpu(facts), facts.error));
}

std::string describe_gpu(const GpuFacts& gpu) {
  return gpu.uuid.empty() ? fmt::format("GPU {}", gpu.index)
                          : fmt::format("GPU {} ({})", gpu.index, gpu.uuid);
}

}  // namespace braid
