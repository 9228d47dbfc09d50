// SPDX-License-Identifier: Apache-2.0
#include "gpu/gpu_reader.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <set>

#include "gpu/gpu_place.h"

namespace braid {
namespace {

// The GPU itself is not there for us; other codes are about one number of it.
bool is_gone(nvml::Return code) {
  switch (code) {
    case nvml::kUninitialized:
    case nvml::kIrqIssue:
    case nvml::kGpuIsLost:
    case nvml::kResetRequired:
    case nvml::kOperatingSystem:
    case nvml::kUnknown:
      return true;
    default:
      return false;
  }
}

// One reading of one GPU: what a call gives, or what stands for "not known". After a call that says
// that the GPU is gone no further one is made, because each of them may wait for it.
class GpuCalls {
 public:
  GpuCalls(const nvml::Functions& functions, nvml::Device device)
      : functions_(functions), device_(device) {}

  const std::string& error() const { return error_; }

  // `arguments`: those between the device and the result.
  template <typename Function, typename Number, typename... Arguments>
  bool get(Function function, Number& number, Arguments... arguments) {
    if (function == nullptr || !error_.empty()) return false;
    const nvml::Return code = function(device_, arguments..., &number);
    if (is_gone(code)) error_ = nvml_error(functions_, code);
    return code == nvml::kSuccess;
  }

  uint32_t number(nvml::OfDevice function) {
    unsigned int number = 0;
    return get(function, number) ? number : 0;
  }

  int64_t ecc_errors(unsigned int kind) {
    unsigned long long count = 0;
    if (!get(functions_.ecc_errors, count, kind, nvml::kVolatileEcc)) return -1;
    return static_cast<int64_t>(std::min<unsigned long long>(count, INT64_MAX));
  }

  void add_processes(nvml::ProcessesOfDevice function, std::vector<GpuFacts::Process>& processes) {
    std::array<nvml::ProcessInfo, GpuReader::kProcessesMax> infos{};
    if (function == nullptr || !error_.empty()) return;
    unsigned int count = GpuReader::kProcessesMax;
    const nvml::Return code = function(device_, &count, infos.data());
    if (is_gone(code)) error_ = nvml_error(functions_, code);
    if (code != nvml::kSuccess) return;
    for (size_t i = 0; i < std::min<size_t>(count, infos.size()); ++i) {
      const bool is_known = std::ranges::any_of(processes, [&](const auto& one) {
        return one.pid == static_cast<int64_t>(infos[i].pid);
      });
      if (is_known) continue;  // several parts of one GPU list it
      const bool has_memory = infos[i].used_memory != ~0ULL;
      processes.push_back({infos[i].pid, has_memory ? infos[i].used_memory : 0});
    }
  }

 private:
  const nvml::Functions& functions_;
  const nvml::Device device_;
  std::string error_;
};

std::vector<GpuFacts::Reason> reasons_of(unsigned long long bits) {
  std::vector<GpuFacts::Reason> reasons;
  const auto add_if = [&](bool is_so, std::string_view name) {
    if (is_so) reasons.push_back({std::string(name)});
  };
  constexpr auto kHeat = nvml::kSwThermalSlowdown | nvml::kHwThermalSlowdown;
  constexpr auto kWithCause = nvml::kHwThermalSlowdown | nvml::kHwPowerBrake;
  constexpr auto kSettings = nvml::kApplicationClocks | nvml::kSyncBoost | nvml::kDisplayClock |
                             nvml::kBoardLimit | nvml::kReliability;
  add_if((bits & kHeat) != 0, kSlowedByHeat);
  add_if((bits & nvml::kSwPowerCap) != 0, kSlowedByPowerCap);
  add_if((bits & nvml::kHwPowerBrake) != 0, kSlowedByPowerBrake);
  add_if((bits & nvml::kHwSlowdown) != 0 && (bits & kWithCause) == 0, kSlowedByHardware);
  add_if((bits & kSettings) != 0, kSlowedBySetting);
  add_if((bits & nvml::kGpuIdle) != 0, kSlowedByIdleness);
  return reasons;
}

}  // namespace

GpuReader::GpuReader(const nvml::Functions& functions, GpuReaderOptions options)
    : functions_(functions), options_(std::move(options)) {}

Result<std::unique_ptr<GpuReader>> GpuReader::create(const nvml::Functions& functions,
                                                     GpuReaderOptions options) {
  const nvml::Return code = functions.init();
  if (code != nvml::kSuccess) {
    return make_status(StatusCode::Unavailable, "NVIDIA's library does not begin: {}",
                       nvml_error(functions, code));
  }
  std::unique_ptr<GpuReader> reader(new GpuReader(functions, std::move(options)));
  BRAID_RETURN_IF_ERROR(reader->find_gpus());
  reader->register_events();
  return reader;
}

GpuReader::~GpuReader() {
  if (events_ != nullptr && functions_.event_set_free != nullptr)
    functions_.event_set_free(events_);
  functions_.shutdown();
}

Status GpuReader::find_gpus() {
  unsigned int count = 0;
  const nvml::Return code = functions_.device_count(&count);
  if (code != nvml::kSuccess) {
    return make_status(StatusCode::Unavailable, "NVIDIA's library does not count its GPUs: {}",
                       nvml_error(functions_, code));
  }
  for (uint32_t index = 0; index < std::min(count, kGpusMax); ++index)
    gpus_.push_back(find_gpu(index));
  return Status::ok();
}

GpuReader::Gpu GpuReader::find_gpu(uint32_t index) {
  Gpu gpu;
  gpu.facts.index = index;
  nvml::Device device = nullptr;
  const nvml::Return code = functions_.device_by_index(index, &device);
  if (code != nvml::kSuccess) {
    gpu.facts.error = nvml_error(functions_, code);
    return gpu;
  }
  gpu.device = device;
  std::array<char, nvml::kNameBytes> text{};
  static_assert(nvml::kNameBytes == nvml::kUuidBytes);
  if (functions_.name != nullptr &&
      functions_.name(device, text.data(), text.size() - 1) == nvml::kSuccess)
    gpu.facts.name = text.data();
  text.fill('\0');
  if (functions_.uuid != nullptr &&
      functions_.uuid(device, text.data(), text.size() - 1) == nvml::kSuccess)
    gpu.facts.uuid = text.data();
  nvml::PciInfo pci{};
  if (functions_.pci_info == nullptr || functions_.pci_info(device, &pci) != nvml::kSuccess)
    return gpu;
  gpu.facts.pci = fmt::format("{:04x}:{:02x}:{:02x}.0", pci.domain, pci.bus, pci.device);
  gpu.facts.numa_node = numa_node_of(options_.sys, gpu.facts.pci);
  gpu.facts.near_rails = nearest_rails(options_.sys, gpu.facts.pci, options_.rails);
  return gpu;
}

void GpuReader::register_events() {
  if (functions_.event_set_create == nullptr || functions_.register_events == nullptr ||
      functions_.event_set_wait == nullptr ||
      functions_.event_set_create(&events_) != nvml::kSuccess) {
    events_ = nullptr;
    return;
  }
  // Not all cards have events; those of the others are still told.
  for (const Gpu& gpu : gpus_) {
    if (gpu.device != nullptr)
      (void)functions_.register_events(gpu.device, nvml::kEventXid, events_);
  }
}

GpuReader::Reading GpuReader::read() {
  Reading reading;
  for (const Gpu& gpu : gpus_) reading.gpus.push_back(read_gpu(gpu));
  reading.xids = take_xids();
  return reading;
}

GpuFacts GpuReader::read_gpu(const Gpu& gpu) {
  GpuFacts facts = gpu.facts;
  if (gpu.device == nullptr) return facts;
  GpuCalls calls(functions_, gpu.device);
  unsigned int number = 0;
  if (calls.get(functions_.clock, number, nvml::kClockSm)) facts.clock_mhz = number;
  if (calls.get(functions_.clock_max, number, nvml::kClockSm)) facts.clock_max_mhz = number;
  unsigned long long reasons = 0;
  if (calls.get(functions_.clock_reasons, reasons)) facts.reasons = reasons_of(reasons);
  if (calls.get(functions_.temperature, number, nvml::kTemperatureGpu))
    facts.temperature_celsius = static_cast<int32_t>(std::min(number, 1000U));
  facts.power_watts = calls.number(functions_.power) / 1000.0;
  facts.power_limit_watts = calls.number(functions_.power_limit) / 1000.0;
  nvml::Utilization utilization{};
  if (calls.get(functions_.utilization, utilization)) facts.utilization = utilization.gpu / 100.0;
  nvml::Memory memory{};
  if (calls.get(functions_.memory, memory)) {
    facts.memory_used_bytes = memory.used;
    facts.memory_bytes = memory.total;
  }
  facts.ecc_corrected = calls.ecc_errors(nvml::kErrorCorrected);
  facts.ecc_uncorrected = calls.ecc_errors(nvml::kErrorUncorrected);
  facts.pcie_generation = calls.number(functions_.pcie_generation);
  facts.pcie_generation_max = calls.number(functions_.pcie_generation_max);
  facts.pcie_width = calls.number(functions_.pcie_width);
  facts.pcie_width_max = calls.number(functions_.pcie_width_max);
  if (calls.get(functions_.pcie_replays, number)) facts.pcie_replays = number;
  calls.add_processes(functions_.processes, facts.processes);
  calls.add_processes(functions_.mps_processes, facts.processes);
  if (calls.error().empty()) return facts;
  // Half of a reading would look like a GPU that rests.
  GpuFacts gone = gpu.facts;
  gone.error = calls.error();
  return gone;
}

std::vector<GpuReader::Xid> GpuReader::take_xids() {
  std::vector<Xid> xids;
  if (events_ == nullptr) return xids;
  nvml::EventData event{};
  for (uint32_t i = 0; i < kEventsMax; ++i) {
    if (functions_.event_set_wait(events_, &event, 0) != nvml::kSuccess) break;
    const auto gpu = std::ranges::find(gpus_, event.device, &Gpu::device);
    if (event.type != nvml::kEventXid || gpu == gpus_.end()) continue;
    xids.push_back({gpu->facts.index, static_cast<uint32_t>(event.data)});
  }
  return xids;
}

}  // namespace braid
