// SPDX-License-Identifier: Apache-2.0
#include <cstdlib>
#include <utility>

#include "bench/gpu/children.h"
#include "bench/gpu/probes.h"

namespace braid::gpu_probe {
namespace {

constexpr double kMib = 1 << 20;
constexpr int kContextTimeoutMs = 15'000;

constexpr std::pair<const char*, CUdevice_attribute> kAttributes[] = {
    {"async_engines", CU_DEVICE_ATTRIBUTE_ASYNC_ENGINE_COUNT},
    {"host_register", CU_DEVICE_ATTRIBUTE_HOST_REGISTER_SUPPORTED},
    {"read_only_host_register", CU_DEVICE_ATTRIBUTE_READ_ONLY_HOST_REGISTER_SUPPORTED},
    {"stream_memory_operations", CU_DEVICE_ATTRIBUTE_CAN_USE_64_BIT_STREAM_MEM_OPS},
    {"wait_value_nor", CU_DEVICE_ATTRIBUTE_CAN_USE_STREAM_WAIT_VALUE_NOR},
    {"flush_remote_writes", CU_DEVICE_ATTRIBUTE_CAN_FLUSH_REMOTE_WRITES},
    {"same_host_pointer", CU_DEVICE_ATTRIBUTE_CAN_USE_HOST_POINTER_FOR_REGISTERED_MEM},
    {"virtual_memory", CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED},
    {"posix_descriptors", CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED},
    {"dma_buf", CU_DEVICE_ATTRIBUTE_DMA_BUF_SUPPORTED},
    {"gpu_direct_rdma", CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_SUPPORTED},
    {"pageable_access", CU_DEVICE_ATTRIBUTE_PAGEABLE_MEMORY_ACCESS},
    {"host_numa_node", CU_DEVICE_ATTRIBUTE_HOST_NUMA_ID},
};

}  // namespace

Status probe_device(const Gpu& gpu, const Say& say) {
  char name[128] = {};
  int version = 0;
  int least_urgent = 0;
  int most_urgent = 0;
  BRAID_RETURN_IF_ERROR(gpu.DeviceGetName(name, static_cast<int>(sizeof name), gpu.device()));
  BRAID_RETURN_IF_ERROR(gpu.DriverGetVersion(&version));
  BRAID_RETURN_IF_ERROR(gpu.CtxGetStreamPriorityRange(&least_urgent, &most_urgent));
  nlohmann::json row{{"test", "device"}, {"name", name}, {"driver_api", version}};
  row["priorities"] = std::abs(most_urgent - least_urgent) + 1;
  for (const auto& [key, attribute] : kAttributes) {
    int value = 0;
    const Status status = gpu.DeviceGetAttribute(&value, attribute, gpu.device());
    row[key] = status.is_ok() ? nlohmann::json(value) : nlohmann::json(nullptr);
  }
  say(row);
  return Status::ok();
}

Status probe_context_memory(const Gpu& gpu, const Say& say, const std::string& program) {
  size_t before = 0;
  size_t after = 0;
  size_t total = 0;
  BRAID_RETURN_IF_ERROR(gpu.MemGetInfo(&before, &total));
  Result<Child> holder = Child::start(program, {"hold"});
  if (!holder.is_ok()) return holder.status();
  if (holder->read(kContextTimeoutMs).empty()) {
    return {StatusCode::DeadlineExceeded, "the other process made no context"};
  }
  BRAID_RETURN_IF_ERROR(gpu.MemGetInfo(&after, &total));
  say({{"test", "context-memory"},
       {"mib", (static_cast<double>(before) - static_cast<double>(after)) / kMib},
       {"total_mib", static_cast<double>(total) / kMib}});
  return Status::ok();
}

}  // namespace braid::gpu_probe
