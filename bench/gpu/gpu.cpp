// SPDX-License-Identifier: Apache-2.0
#include "bench/gpu/gpu.h"

#include <dlfcn.h>

namespace braid::gpu_probe {
namespace {

constexpr const char* kDriver = "libcuda.so.1";

}  // namespace

// cuda.h names the version of a function that fits its declaration: cuMemAlloc is cuMemAlloc_v2.
#define BRAID_PROBE_STRING_OF(symbol) #symbol
#define BRAID_PROBE_STRING(symbol) BRAID_PROBE_STRING_OF(symbol)

Status Gpu::load() {
  void* library = ::dlopen(kDriver, RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    const char* reason = ::dlerror();
    return {StatusCode::NotFound, reason == nullptr ? kDriver : reason};
  }
#define BRAID_PROBE_FIND(name) \
  name##_ = reinterpret_cast<decltype(name##_)>(::dlsym(library, BRAID_PROBE_STRING(cu##name)));
  BRAID_PROBE_FUNCTIONS(BRAID_PROBE_FIND)
#undef BRAID_PROBE_FIND
  return Status::ok();
}

Result<std::unique_ptr<Gpu>> Gpu::open() {
  std::unique_ptr<Gpu> gpu(new Gpu());
  BRAID_RETURN_IF_ERROR(gpu->load());
  BRAID_RETURN_IF_ERROR(gpu->Init(0U));
  BRAID_RETURN_IF_ERROR(gpu->DeviceGet(&gpu->device_, 0));
  BRAID_RETURN_IF_ERROR(gpu->DevicePrimaryCtxRetain(&gpu->context_, gpu->device_));
  BRAID_RETURN_IF_ERROR(gpu->make_current());
  return gpu;
}

Gpu::~Gpu() {
  if (context_ != nullptr) (void)DevicePrimaryCtxRelease(device_);
}

Status Gpu::missing(const char* name) {
  return make_status(StatusCode::Unavailable, "this driver has no {}", name);
}

Status Gpu::failed(const char* name, CUresult result) const {
  const char* text = nullptr;
  if (GetErrorName_ != nullptr) (void)GetErrorName_(result, &text);
  return {StatusCode::Internal, fmt::format("{}: {}", name, text == nullptr ? "unknown" : text),
          static_cast<int>(result)};
}

}  // namespace braid::gpu_probe
