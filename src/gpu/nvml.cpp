// SPDX-License-Identifier: Apache-2.0
#include "gpu/nvml.h"

#include <dlfcn.h>

namespace braid {
namespace {

// False: there is none of this name.
template <typename Function>
bool find(void* library, const char* name, Function& function) {
  function = reinterpret_cast<Function>(::dlsym(library, name));
  return function != nullptr;
}

void find_optional(void* library, nvml::Functions& functions) {
  find(library, "nvmlErrorString", functions.error_string);
  find(library, "nvmlDeviceGetName", functions.name);
  find(library, "nvmlDeviceGetUUID", functions.uuid);
  find(library, "nvmlDeviceGetPciInfo_v3", functions.pci_info);
  find(library, "nvmlDeviceGetClockInfo", functions.clock);
  find(library, "nvmlDeviceGetMaxClockInfo", functions.clock_max);
  // The first name came with driver 535, the second one may go.
  if (!find(library, "nvmlDeviceGetCurrentClocksEventReasons", functions.clock_reasons))
    find(library, "nvmlDeviceGetCurrentClocksThrottleReasons", functions.clock_reasons);
  find(library, "nvmlDeviceGetTemperature", functions.temperature);
  find(library, "nvmlDeviceGetPowerUsage", functions.power);
  find(library, "nvmlDeviceGetEnforcedPowerLimit", functions.power_limit);
  find(library, "nvmlDeviceGetUtilizationRates", functions.utilization);
  find(library, "nvmlDeviceGetMemoryInfo", functions.memory);
  find(library, "nvmlDeviceGetTotalEccErrors", functions.ecc_errors);
  find(library, "nvmlDeviceGetCurrPcieLinkGeneration", functions.pcie_generation);
  find(library, "nvmlDeviceGetMaxPcieLinkGeneration", functions.pcie_generation_max);
  find(library, "nvmlDeviceGetCurrPcieLinkWidth", functions.pcie_width);
  find(library, "nvmlDeviceGetMaxPcieLinkWidth", functions.pcie_width_max);
  find(library, "nvmlDeviceGetPcieReplayCounter", functions.pcie_replays);
  find(library, "nvmlDeviceGetComputeRunningProcesses_v3", functions.processes);
  find(library, "nvmlDeviceGetMPSComputeRunningProcesses_v3", functions.mps_processes);
  find(library, "nvmlEventSetCreate", functions.event_set_create);
  find(library, "nvmlEventSetFree", functions.event_set_free);
  find(library, "nvmlDeviceRegisterEvents", functions.register_events);
  find(library, "nvmlEventSetWait_v2", functions.event_set_wait);
}

}  // namespace

Result<nvml::Functions> load_nvml(const std::string& library) {
  void* loaded = ::dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (loaded == nullptr) {
    const char* why = ::dlerror();
    return make_status(StatusCode::NotFound, "{} cannot be loaded: {}", library,
                       why == nullptr ? "no reason was given" : why);
  }
  nvml::Functions functions;
  const char* missing = nullptr;
  const auto require = [&](const char* name, auto& function) {
    if (!find(loaded, name, function) && missing == nullptr) missing = name;
  };
  require("nvmlInit_v2", functions.init);
  require("nvmlShutdown", functions.shutdown);
  require("nvmlDeviceGetCount_v2", functions.device_count);
  require("nvmlDeviceGetHandleByIndex_v2", functions.device_by_index);
  if (missing != nullptr) {
    return make_status(StatusCode::Unavailable,
                       "{} has no {}: it is older than the NVIDIA driver 319, or something else",
                       library, missing);
  }
  find_optional(loaded, functions);
  return functions;
}

std::string nvml_error(const nvml::Functions& functions, nvml::Return code) {
  const char* text = functions.error_string == nullptr ? nullptr : functions.error_string(code);
  return text == nullptr ? fmt::format("NVML error {}", code) : std::string(text);
}

}  // namespace braid
