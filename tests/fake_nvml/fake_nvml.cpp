// SPDX-License-Identifier: Apache-2.0
// A libnvidia-ml.so.1 for tests: the functions of NVIDIA's management library that braid calls,
// about GPUs that a text file describes. Each call reads the file that FAKE_NVML_FILE names, so a
// test changes it (by renaming another one onto it) while a daemon runs:
//
//   gpus 2                      how many there are
//   hang 1                      calls about GPUs do not return while this stands here
//   fail nvmlInit_v2 9          this function returns the code
//   0 clock 1140                GPU 0: a number of it; kNumbers has the names and what else holds
//   0 lost 15                   all calls about GPU 0 return the code
//   0 name NVIDIA H100          its name
//   0 xid 79 48                 all Xids so far: each is told once
//   0 processes 4711:1048576    processes that compute on it, with their memory
//
// FAKE_NVML_OLD: as an old driver has it, without the functions that came later.
#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "gpu/nvml.h"

namespace {

namespace nvml = braid::nvml;

constexpr nvml::Return kInvalidArgument = 2;
constexpr nvml::Return kNotSupported = 3;
constexpr nvml::Return kNotFound = 6;
constexpr nvml::Return kDriverNotLoaded = 9;
constexpr nvml::Return kTimeout = 10;
constexpr size_t kGpusMax = 16;

struct Number {
  std::string_view name;
  unsigned long long usual;
};
// Nothing to destroy: a thread that hangs in here outlives the end of main().
constexpr std::array<Number, 17> kNumbers = {{
    {"clock", 1980},
    {"clock_max", 1980},
    {"reasons", 0},
    {"temperature", 45},
    {"power", 300'000},
    {"power_limit", 700'000},
    {"utilization", 95},
    {"memory", 80ull << 30},
    {"memory_used", 10ull << 30},
    {"ecc_corrected", 0},
    {"ecc_uncorrected", 0},
    {"pcie_generation", 5},
    {"pcie_generation_max", 5},
    {"pcie_width", 16},
    {"pcie_width_max", 16},
    {"pcie_replays", 0},
    {"bus", 0x17},
}};

struct Gpu {
  std::map<std::string, std::string> words;  // of a line, after its key
};
struct File {
  bool is_there = false;
  bool hangs = false;
  unsigned int gpus = 0;
  std::map<std::string, nvml::Return> fails;
  std::map<unsigned int, Gpu> of_gpu;
};

File read_file() {
  File file;
  const char* path = std::getenv("FAKE_NVML_FILE");
  std::ifstream stream(path == nullptr ? "" : path);
  file.is_there = stream.is_open();
  for (std::string line; std::getline(stream, line);) {
    std::istringstream words(line);
    std::string first, second;
    words >> first >> second;
    std::string rest;
    std::getline(words >> std::ws, rest);
    if (first == "gpus") {
      file.gpus = static_cast<unsigned int>(std::stoul(second));
    } else if (first == "hang") {
      file.hangs = second == "1";
    } else if (first == "fail") {
      file.fails[second] = static_cast<nvml::Return>(std::stoul(rest));
    } else if (!first.empty() && first[0] >= '0' && first[0] <= '9') {
      file.of_gpu[static_cast<unsigned int>(std::stoul(first))].words[second] = rest;
    }
  }
  return file;
}

// A handle is the address of the GPU's place in here.
std::array<char, kGpusMax> g_handles;
// How many Xids of each GPU were told; reset when the library begins. Braid calls from one thread.
std::array<size_t, kGpusMax> g_xids_told;

nvml::Device handle_of(unsigned int index) {
  return reinterpret_cast<nvml::Device>(&g_handles[index]);
}

// One call about a GPU: waits while calls hang, then says how the call ends.
struct Call {
  Call(const char* function, nvml::Device device)
      : index(static_cast<unsigned int>(reinterpret_cast<char*>(device) - g_handles.data())),
        file(read_file()) {
    while (file.hangs) {
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
      file = read_file();
    }
    if (index >= file.gpus) code = kInvalidArgument;
    if (const auto lost = word("lost"); !lost.empty())
      code = static_cast<nvml::Return>(std::stoul(lost));
    if (const auto failed = file.fails.find(function); failed != file.fails.end())
      code = failed->second;
  }

  std::string word(const std::string& key) {
    const auto& words = file.of_gpu[index].words;
    const auto found = words.find(key);
    return found == words.end() ? std::string() : found->second;
  }
  unsigned long long number(const std::string& key) {
    const std::string text = word(key);
    if (!text.empty()) return std::stoull(text, nullptr, 0);
    return std::ranges::find(kNumbers, key, &Number::name)->usual;
  }
  template <typename Number>
  nvml::Return give(const std::string& key, Number* result) {
    if (code == nvml::kSuccess) *result = static_cast<Number>(number(key));
    return code;
  }

  unsigned int index;
  File file;
  nvml::Return code = nvml::kSuccess;
};

nvml::Return give_text(const std::string& text, char* result, unsigned int bytes) {
  if (text.size() >= bytes) return nvml::kInsufficientSize;
  std::memcpy(result, text.c_str(), text.size() + 1);
  return nvml::kSuccess;
}

nvml::Return fails(const File& file, const char* function) {
  const auto failed = file.fails.find(function);
  return failed == file.fails.end() ? nvml::kSuccess : failed->second;
}

}  // namespace

extern "C" {

nvml::Return nvmlInit_v2() {
  const File file = read_file();
  g_xids_told.fill(0);
  return file.is_there ? fails(file, __func__) : kDriverNotLoaded;
}
nvml::Return nvmlShutdown() { return nvml::kSuccess; }

const char* nvmlErrorString(nvml::Return code) {
  switch (code) {
    case nvml::kSuccess:
      return "Success";
    case kNotSupported:
      return "Not Supported";
    case kDriverNotLoaded:
      return "Driver Not Loaded";
    case nvml::kGpuIsLost:
      return "GPU is lost";
    case nvml::kResetRequired:
      return "GPU requires reset";
    default:
      return "Unknown Error";
  }
}

nvml::Return nvmlDeviceGetCount_v2(unsigned int* count) {
  const File file = read_file();
  *count = file.gpus;
  return fails(file, __func__);
}
nvml::Return nvmlDeviceGetHandleByIndex_v2(unsigned int index, nvml::Device* device) {
  if (index >= kGpusMax) return kInvalidArgument;
  *device = handle_of(index);
  return Call(__func__, *device).code;
}
nvml::Return nvmlDeviceGetName(nvml::Device device, char* name, unsigned int bytes) {
  Call call(__func__, device);
  if (call.code != nvml::kSuccess) return call.code;
  const std::string own = call.word("name");
  return give_text(own.empty() ? "NVIDIA Fake 80GB" : own, name, bytes);
}
nvml::Return nvmlDeviceGetUUID(nvml::Device device, char* uuid, unsigned int bytes) {
  Call call(__func__, device);
  if (call.code != nvml::kSuccess) return call.code;
  const std::string own = call.word("uuid");
  return give_text(own.empty() ? "GPU-fake-" + std::to_string(call.index) : own, uuid, bytes);
}
nvml::Return nvmlDeviceGetPciInfo_v3(nvml::Device device, nvml::PciInfo* pci) {
  Call call(__func__, device);
  *pci = {};
  pci->bus = static_cast<unsigned int>(call.number("bus")) + call.index;
  return call.code;
}
nvml::Return nvmlDeviceGetClockInfo(nvml::Device device, unsigned int type, unsigned int* clock) {
  if (type != nvml::kClockSm) return kInvalidArgument;
  return Call(__func__, device).give("clock", clock);
}
nvml::Return nvmlDeviceGetMaxClockInfo(nvml::Device device, unsigned int type,
                                       unsigned int* clock) {
  if (type != nvml::kClockSm) return kInvalidArgument;
  return Call(__func__, device).give("clock_max", clock);
}
nvml::Return nvmlDeviceGetTemperature(nvml::Device device, unsigned int sensor,
                                      unsigned int* temperature) {
  if (sensor != nvml::kTemperatureGpu) return kInvalidArgument;
  return Call(__func__, device).give("temperature", temperature);
}
nvml::Return nvmlDeviceGetCurrentClocksThrottleReasons(nvml::Device device,
                                                       unsigned long long* reasons) {
  return Call(__func__, device).give("reasons", reasons);
}
nvml::Return nvmlDeviceGetPowerUsage(nvml::Device device, unsigned int* power) {
  return Call(__func__, device).give("power", power);
}
nvml::Return nvmlDeviceGetEnforcedPowerLimit(nvml::Device device, unsigned int* limit) {
  return Call(__func__, device).give("power_limit", limit);
}
nvml::Return nvmlDeviceGetUtilizationRates(nvml::Device device, nvml::Utilization* utilization) {
  utilization->memory = 0;
  return Call(__func__, device).give("utilization", &utilization->gpu);
}
nvml::Return nvmlDeviceGetMemoryInfo(nvml::Device device, nvml::Memory* memory) {
  Call call(__func__, device);
  (void)call.give("memory", &memory->total);
  (void)call.give("memory_used", &memory->used);
  memory->free = memory->total - memory->used;
  return call.code;
}
nvml::Return nvmlDeviceGetTotalEccErrors(nvml::Device device, unsigned int error,
                                         unsigned int counter, unsigned long long* count) {
  if (error > nvml::kErrorUncorrected || counter != nvml::kVolatileEcc) return kInvalidArgument;
  return Call(__func__, device)
      .give(error == nvml::kErrorCorrected ? "ecc_corrected" : "ecc_uncorrected", count);
}
nvml::Return nvmlDeviceGetCurrPcieLinkGeneration(nvml::Device device, unsigned int* generation) {
  return Call(__func__, device).give("pcie_generation", generation);
}
nvml::Return nvmlDeviceGetMaxPcieLinkGeneration(nvml::Device device, unsigned int* generation) {
  return Call(__func__, device).give("pcie_generation_max", generation);
}
nvml::Return nvmlDeviceGetCurrPcieLinkWidth(nvml::Device device, unsigned int* width) {
  return Call(__func__, device).give("pcie_width", width);
}
nvml::Return nvmlDeviceGetMaxPcieLinkWidth(nvml::Device device, unsigned int* width) {
  return Call(__func__, device).give("pcie_width_max", width);
}
nvml::Return nvmlDeviceGetPcieReplayCounter(nvml::Device device, unsigned int* replays) {
  return Call(__func__, device).give("pcie_replays", replays);
}

#ifndef FAKE_NVML_OLD

nvml::Return nvmlDeviceGetCurrentClocksEventReasons(nvml::Device device,
                                                    unsigned long long* reasons) {
  return Call(__func__, device).give("reasons", reasons);
}

nvml::Return nvmlDeviceGetComputeRunningProcesses_v3(nvml::Device device, unsigned int* count,
                                                     nvml::ProcessInfo* infos) {
  Call call(__func__, device);
  if (call.code != nvml::kSuccess) return call.code;
  std::istringstream words(call.word("processes"));
  std::vector<nvml::ProcessInfo> all;
  for (std::string word; words >> word;) {
    nvml::ProcessInfo info{};
    info.pid = static_cast<unsigned int>(std::stoul(word));
    const size_t colon = word.find(':');
    info.used_memory = colon == std::string::npos ? ~0ULL : std::stoull(word.substr(colon + 1));
    all.push_back(info);
  }
  const unsigned int room = *count;
  *count = static_cast<unsigned int>(all.size());
  if (all.size() > room) return nvml::kInsufficientSize;
  std::ranges::copy(all, infos);
  return nvml::kSuccess;
}
nvml::Return nvmlDeviceGetMPSComputeRunningProcesses_v3(nvml::Device device, unsigned int* count,
                                                        nvml::ProcessInfo*) {
  *count = 0;
  return Call(__func__, device).code;
}

nvml::Return nvmlEventSetCreate(nvml::EventSet* set) {
  *set = reinterpret_cast<nvml::EventSet>(g_handles.data());
  return nvml::kSuccess;
}
nvml::Return nvmlEventSetFree(nvml::EventSet) { return nvml::kSuccess; }
nvml::Return nvmlDeviceRegisterEvents(nvml::Device device, unsigned long long types,
                                      nvml::EventSet) {
  return types == nvml::kEventXid ? Call(__func__, device).code : kNotSupported;
}
nvml::Return nvmlEventSetWait_v2(nvml::EventSet, nvml::EventData* event, unsigned int) {
  const File file = read_file();
  for (const auto& [index, gpu] : file.of_gpu) {
    const auto line = gpu.words.find("xid");
    if (line == gpu.words.end() || index >= kGpusMax) continue;
    std::istringstream words(line->second);
    std::vector<unsigned long long> xids;
    for (unsigned long long xid = 0; words >> xid;) xids.push_back(xid);
    if (g_xids_told[index] >= xids.size()) continue;
    *event = {handle_of(index), nvml::kEventXid, xids[g_xids_told[index]++], ~0U, ~0U};
    return nvml::kSuccess;
  }
  return kTimeout;
}

#endif

}  // extern "C"
