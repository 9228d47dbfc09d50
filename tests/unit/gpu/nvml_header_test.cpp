// SPDX-License-Identifier: Apache-2.0
// What braid declares of NVIDIA's library, against the library's own header.
#include <gtest/gtest.h>

#include "gpu/nvml.h"

#if __has_include(<nvml.h>)
// Some of its functions are called by their deprecated names in old drivers, as braid does.
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
#include <cstddef>
#include <type_traits>

#include <nvml.h>

namespace braid {
namespace {

template <typename Own, typename Theirs>
constexpr bool is_laid_out_alike() {
  return sizeof(Own) == sizeof(Theirs) && alignof(Own) == alignof(Theirs);
}
static_assert(is_laid_out_alike<nvml::PciInfo, nvmlPciInfo_t>());
static_assert(offsetof(nvml::PciInfo, domain) == offsetof(nvmlPciInfo_t, domain));
static_assert(offsetof(nvml::PciInfo, bus) == offsetof(nvmlPciInfo_t, bus));
static_assert(offsetof(nvml::PciInfo, device) == offsetof(nvmlPciInfo_t, device));
static_assert(is_laid_out_alike<nvml::Memory, nvmlMemory_t>());
static_assert(offsetof(nvml::Memory, used) == offsetof(nvmlMemory_t, used));
static_assert(is_laid_out_alike<nvml::Utilization, nvmlUtilization_t>());
static_assert(is_laid_out_alike<nvml::ProcessInfo, nvmlProcessInfo_t>());
static_assert(offsetof(nvml::ProcessInfo, used_memory) ==
              offsetof(nvmlProcessInfo_t, usedGpuMemory));
static_assert(is_laid_out_alike<nvml::EventData, nvmlEventData_t>());
static_assert(offsetof(nvml::EventData, type) == offsetof(nvmlEventData_t, eventType));
static_assert(offsetof(nvml::EventData, data) == offsetof(nvmlEventData_t, eventData));

// Pointers, enums and structs that are laid out alike are passed alike.
template <typename Own, typename Theirs>
constexpr bool is_passed_alike() {
  if constexpr (std::is_pointer_v<Own> && std::is_pointer_v<Theirs>) {
    return true;
  } else {
    return sizeof(Own) == sizeof(Theirs) && std::is_integral_v<Own> &&
           (std::is_integral_v<Theirs> || std::is_enum_v<Theirs>);
  }
}
template <typename Own, typename Theirs>
struct Alike : std::false_type {};
template <typename OwnResult, typename... Own, typename TheirResult, typename... Theirs>
requires(sizeof...(Own) ==
         sizeof...(Theirs)) struct Alike<OwnResult (*)(Own...), TheirResult(Theirs...)>
    : std::bool_constant<is_passed_alike<OwnResult, TheirResult>() &&
                         (is_passed_alike<Own, Theirs>() && ...)> {
};
#define BRAID_ALIKE(own, theirs) \
  static_assert(Alike<decltype(nvml::Functions::own), decltype(theirs)>::value)
BRAID_ALIKE(init, nvmlInit_v2);
BRAID_ALIKE(shutdown, nvmlShutdown);
BRAID_ALIKE(device_count, nvmlDeviceGetCount_v2);
BRAID_ALIKE(device_by_index, nvmlDeviceGetHandleByIndex_v2);
BRAID_ALIKE(error_string, nvmlErrorString);
BRAID_ALIKE(name, nvmlDeviceGetName);
BRAID_ALIKE(uuid, nvmlDeviceGetUUID);
BRAID_ALIKE(pci_info, nvmlDeviceGetPciInfo_v3);
BRAID_ALIKE(clock, nvmlDeviceGetClockInfo);
BRAID_ALIKE(clock_max, nvmlDeviceGetMaxClockInfo);
BRAID_ALIKE(clock_reasons, nvmlDeviceGetCurrentClocksThrottleReasons);
BRAID_ALIKE(temperature, nvmlDeviceGetTemperature);
BRAID_ALIKE(power, nvmlDeviceGetPowerUsage);
BRAID_ALIKE(power_limit, nvmlDeviceGetEnforcedPowerLimit);
BRAID_ALIKE(utilization, nvmlDeviceGetUtilizationRates);
BRAID_ALIKE(memory, nvmlDeviceGetMemoryInfo);
BRAID_ALIKE(ecc_errors, nvmlDeviceGetTotalEccErrors);
BRAID_ALIKE(pcie_generation, nvmlDeviceGetCurrPcieLinkGeneration);
BRAID_ALIKE(pcie_generation_max, nvmlDeviceGetMaxPcieLinkGeneration);
BRAID_ALIKE(pcie_width, nvmlDeviceGetCurrPcieLinkWidth);
BRAID_ALIKE(pcie_width_max, nvmlDeviceGetMaxPcieLinkWidth);
BRAID_ALIKE(pcie_replays, nvmlDeviceGetPcieReplayCounter);
BRAID_ALIKE(processes, nvmlDeviceGetComputeRunningProcesses_v3);
BRAID_ALIKE(mps_processes, nvmlDeviceGetMPSComputeRunningProcesses_v3);
BRAID_ALIKE(event_set_create, nvmlEventSetCreate);
BRAID_ALIKE(event_set_free, nvmlEventSetFree);
BRAID_ALIKE(register_events, nvmlDeviceRegisterEvents);
BRAID_ALIKE(event_set_wait, nvmlEventSetWait_v2);
#undef BRAID_ALIKE

static_assert(nvml::kGpuIsLost == NVML_ERROR_GPU_IS_LOST);
static_assert(nvml::kResetRequired == NVML_ERROR_RESET_REQUIRED);
static_assert(nvml::kUninitialized == NVML_ERROR_UNINITIALIZED);
static_assert(nvml::kInsufficientSize == NVML_ERROR_INSUFFICIENT_SIZE);
static_assert(nvml::kIrqIssue == NVML_ERROR_IRQ_ISSUE);
static_assert(nvml::kOperatingSystem == NVML_ERROR_OPERATING_SYSTEM);
static_assert(nvml::kUnknown == NVML_ERROR_UNKNOWN);
static_assert(nvml::kClockSm == NVML_CLOCK_SM);
static_assert(nvml::kTemperatureGpu == NVML_TEMPERATURE_GPU);
static_assert(nvml::kErrorCorrected == NVML_MEMORY_ERROR_TYPE_CORRECTED);
static_assert(nvml::kErrorUncorrected == NVML_MEMORY_ERROR_TYPE_UNCORRECTED);
static_assert(nvml::kVolatileEcc == NVML_VOLATILE_ECC);
static_assert(nvml::kEventXid == nvmlEventTypeXidCriticalError);
static_assert(nvml::kNameBytes == NVML_DEVICE_NAME_V2_BUFFER_SIZE);
static_assert(nvml::kUuidBytes == NVML_DEVICE_UUID_V2_BUFFER_SIZE);
static_assert(nvml::kGpuIdle == nvmlClocksThrottleReasonGpuIdle);
static_assert(nvml::kApplicationClocks == nvmlClocksThrottleReasonApplicationsClocksSetting);
static_assert(nvml::kSwPowerCap == nvmlClocksThrottleReasonSwPowerCap);
static_assert(nvml::kHwSlowdown == nvmlClocksThrottleReasonHwSlowdown);
static_assert(nvml::kSyncBoost == nvmlClocksThrottleReasonSyncBoost);
static_assert(nvml::kSwThermalSlowdown == nvmlClocksThrottleReasonSwThermalSlowdown);
static_assert(nvml::kHwThermalSlowdown == nvmlClocksThrottleReasonHwThermalSlowdown);
static_assert(nvml::kHwPowerBrake == nvmlClocksThrottleReasonHwPowerBrakeSlowdown);
static_assert(nvml::kDisplayClock == nvmlClocksThrottleReasonDisplayClockSetting);

}  // namespace
}  // namespace braid
#endif

// Compiled is tested; this says where it was not.
TEST(NvmlHeader, IsWhatTheDeclarationsWereComparedWith) {
#if !__has_include(<nvml.h>)
  GTEST_SKIP() << "there is no nvml.h here: run scripts/setup, then cmake --preset";
#endif
}
