// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "base/status.h"

namespace braid {

// NVIDIA's management library as its own header has it, as far as braid uses it: declared here so
// that no build needs that header. tests/unit/gpu/nvml_header_test.cpp holds these against it.
namespace nvml {

using Return = unsigned int;  // an enum of C
inline constexpr Return kSuccess = 0;
inline constexpr Return kUninitialized = 1;
inline constexpr Return kInsufficientSize = 7;
inline constexpr Return kIrqIssue = 11;
inline constexpr Return kGpuIsLost = 15;
inline constexpr Return kResetRequired = 16;
inline constexpr Return kOperatingSystem = 17;  // a control group keeps the device file away
inline constexpr Return kUnknown = 999;

using Device = struct DeviceState*;
using EventSet = struct EventSetState*;

inline constexpr unsigned int kClockSm = 1;
inline constexpr unsigned int kTemperatureGpu = 0;
inline constexpr unsigned int kErrorCorrected = 0;
inline constexpr unsigned int kErrorUncorrected = 1;
inline constexpr unsigned int kVolatileEcc = 0;  // since the driver was loaded
inline constexpr unsigned long long kEventXid = 0x8;
inline constexpr unsigned int kNameBytes = 96;
inline constexpr unsigned int kUuidBytes = 96;

// Bits of the reasons for which clocks are low.
inline constexpr unsigned long long kGpuIdle = 0x1;
inline constexpr unsigned long long kApplicationClocks = 0x2;
inline constexpr unsigned long long kSwPowerCap = 0x4;
inline constexpr unsigned long long kHwSlowdown = 0x8;  // also with each of the next two kHw…
inline constexpr unsigned long long kSyncBoost = 0x10;
inline constexpr unsigned long long kSwThermalSlowdown = 0x20;
inline constexpr unsigned long long kHwThermalSlowdown = 0x40;
inline constexpr unsigned long long kHwPowerBrake = 0x80;
inline constexpr unsigned long long kDisplayClock = 0x100;
inline constexpr unsigned long long kBoardLimit = 0x200;
inline constexpr unsigned long long kReliability = 0x400;

struct PciInfo {
  char bus_id_legacy[16];
  unsigned int domain;
  unsigned int bus;
  unsigned int device;
  unsigned int device_id;
  unsigned int subsystem_id;
  char bus_id[32];
};
struct Memory {
  unsigned long long total;
  unsigned long long free;
  unsigned long long used;
};
struct Utilization {
  unsigned int gpu;  // percent, as the next one
  unsigned int memory;
};
struct ProcessInfo {
  unsigned int pid;
  unsigned long long used_memory;  // all ones: not known
  unsigned int gpu_instance;
  unsigned int compute_instance;
};
struct EventData {
  Device device;
  unsigned long long type;
  unsigned long long data;  // the Xid
  unsigned int gpu_instance;
  unsigned int compute_instance;
};

using OfDevice = Return (*)(Device, unsigned int*);
using TextOfDevice = Return (*)(Device, char*, unsigned int);
using ProcessesOfDevice = Return (*)(Device, unsigned int*, ProcessInfo*);

// The library's functions; nullptr: it is older than this one, or has lost it since. Those of the
// first group are always there.
struct Functions {
  Return (*init)() = nullptr;
  Return (*shutdown)() = nullptr;
  Return (*device_count)(unsigned int*) = nullptr;
  Return (*device_by_index)(unsigned int, Device*) = nullptr;

  const char* (*error_string)(Return) = nullptr;
  TextOfDevice name = nullptr;
  TextOfDevice uuid = nullptr;
  Return (*pci_info)(Device, PciInfo*) = nullptr;
  Return (*clock)(Device, unsigned int type, unsigned int*) = nullptr;      // MHz
  Return (*clock_max)(Device, unsigned int type, unsigned int*) = nullptr;  // MHz
  Return (*clock_reasons)(Device, unsigned long long*) = nullptr;
  Return (*temperature)(Device, unsigned int sensor, unsigned int*) = nullptr;  // °C
  OfDevice power = nullptr;                                                     // mW
  OfDevice power_limit = nullptr;                                               // mW
  Return (*utilization)(Device, Utilization*) = nullptr;
  Return (*memory)(Device, Memory*) = nullptr;
  Return (*ecc_errors)(Device, unsigned int error, unsigned int counter,
                       unsigned long long*) = nullptr;
  OfDevice pcie_generation = nullptr;
  OfDevice pcie_generation_max = nullptr;
  OfDevice pcie_width = nullptr;
  OfDevice pcie_width_max = nullptr;
  OfDevice pcie_replays = nullptr;
  ProcessesOfDevice processes = nullptr;
  ProcessesOfDevice mps_processes = nullptr;
  Return (*event_set_create)(EventSet*) = nullptr;
  Return (*event_set_free)(EventSet) = nullptr;
  Return (*register_events)(Device, unsigned long long types, EventSet) = nullptr;
  Return (*event_set_wait)(EventSet, EventData*, unsigned int timeout_ms) = nullptr;
};

}  // namespace nvml

inline constexpr const char* kNvmlLibrary = "libnvidia-ml.so.1";

// Loads the library, which then stays in the process: a call may hang in it for ever. NotFound:
// there is none, as on a node without GPUs. Unavailable: what is there is no such library. Any
// thread; reads files.
Result<nvml::Functions> load_nvml(const std::string& library = kNvmlLibrary);

// "GPU is lost", in the library's own words.
std::string nvml_error(const nvml::Functions& functions, nvml::Return code);

}  // namespace braid
