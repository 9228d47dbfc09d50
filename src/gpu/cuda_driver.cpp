// SPDX-License-Identifier: Apache-2.0
#include "gpu/cuda_driver.h"

#include <dlfcn.h>

namespace braid {
namespace {

// The first driver with stream memory operations as braid uses them (cuStreamWaitValue32_v2).
constexpr int kLeastVersion = 11070;
constexpr const char* kLibrary = "libcuda.so.1";

// cuGetProcAddress, as CUDA 12 has it or as CUDA 11.3 to 11.8 have it.
class Finder {
 public:
  explicit Finder(void* library)
      : newer_(
            reinterpret_cast<PFN_cuGetProcAddress_v12000>(::dlsym(library, "cuGetProcAddress_v2"))),
        older_(
            reinterpret_cast<PFN_cuGetProcAddress_v11030>(::dlsym(library, "cuGetProcAddress"))) {}

  bool is_there() const { return newer_ != nullptr || older_ != nullptr; }

  template <typename Function>
  bool find(const char* name, int version, Function& function) const {
    void* found = nullptr;
    CUdriverProcAddressQueryResult answer = CU_GET_PROC_ADDRESS_SUCCESS;
    const CUresult result =
        newer_ != nullptr ? newer_(name, &found, version, CU_GET_PROC_ADDRESS_DEFAULT, &answer)
                          : older_(name, &found, version, CU_GET_PROC_ADDRESS_DEFAULT);
    function = reinterpret_cast<Function>(found);
    return result == CUDA_SUCCESS && found != nullptr;
  }

 private:
  PFN_cuGetProcAddress_v12000 newer_;
  PFN_cuGetProcAddress_v11030 older_;
};

Status too_old(int version) {
  return make_status(StatusCode::Unavailable,
                     "the CUDA driver is of CUDA {}.{}; braid needs that of {}.{} or a newer one",
                     version / 1000, version % 1000 / 10, kLeastVersion / 1000,
                     kLeastVersion % 1000 / 10);
}

Status lacks(const char* function) {
  return make_status(StatusCode::Unavailable, "{} has no function {}: is it CUDA's driver?",
                     kLibrary, function);
}

Result<CudaDriver> load() {
  void* library = ::dlopen(kLibrary, RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    const char* reason = ::dlerror();
    return make_status(StatusCode::NotFound, "no CUDA driver: {}",
                       reason == nullptr ? kLibrary : reason);
  }
  const Finder finder(library);
  if (!finder.is_there()) {
    // CUDA 11.2 and before.
    return lacks("cuGetProcAddress");
  }
  PFN_cuDriverGetVersion_v2020 get_version = nullptr;
  int version = 0;
  if (!finder.find("cuDriverGetVersion", 2020, get_version)) return lacks("cuDriverGetVersion");
  if (get_version(&version) != CUDA_SUCCESS || version < kLeastVersion) return too_old(version);
  CudaDriver driver;
#define BRAID_CUDA_FIND(name, version) \
  if (!finder.find("cu" #name, version, driver.name)) return lacks("cu" #name);
  BRAID_CUDA_FUNCTIONS(BRAID_CUDA_FIND)
#undef BRAID_CUDA_FIND
  return driver;
}

}  // namespace

const Result<CudaDriver>& CudaDriver::get() {
  // Never destroyed: threads may still call it while the process ends.
  static const auto* const driver = new Result<CudaDriver>(load());
  return *driver;
}

Status CudaDriver::check(CUresult result, std::string_view function) const {
  if (result == CUDA_SUCCESS) return {};
  const char* name = nullptr;
  const char* text = nullptr;
  if (GetErrorName(result, &name) != CUDA_SUCCESS) name = "an unknown error";
  if (GetErrorString(result, &text) != CUDA_SUCCESS) text = "no description";
  const auto code =
      result == CUDA_ERROR_OUT_OF_MEMORY ? StatusCode::ResourceExhausted : StatusCode::Unavailable;
  return {code, fmt::format("CUDA's {} failed: {} ({})", function, name, text),
          static_cast<int>(result)};
}

}  // namespace braid
