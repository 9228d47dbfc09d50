// SPDX-License-Identifier: Apache-2.0
#include <string>
#include <utility>

#include <unistd.h>

#include "bench/gpu/children.h"
#include "bench/gpu/host_memory.h"
#include "bench/gpu/probes.h"
#include "bench/gpu/stopwatch.h"

namespace braid::gpu_probe {
namespace {

constexpr size_t kExportedBytes = 256U << 20;
constexpr unsigned char kPattern = 42;
constexpr int kImportTimeoutMs = 20'000;

Status release_allocation(const Gpu& gpu, CUmemGenericAllocationHandle handle) {
  return gpu.MemRelease(handle);
}
using Allocation = Owned<CUmemGenericAllocationHandle, release_allocation>;

// A range of addresses with an allocation behind it.
class Mapping {
 public:
  static Result<Mapping> make(const Gpu& gpu, const Allocation& allocation, size_t bytes) {
    CUdeviceptr address = 0;
    BRAID_RETURN_IF_ERROR(gpu.MemAddressReserve(&address, bytes, size_t{0}, CUdeviceptr{0}, 0ULL));
    if (const Status mapped = gpu.MemMap(address, bytes, size_t{0}, allocation.get(), 0ULL);
        !mapped) {
      (void)gpu.MemAddressFree(address, bytes);
      return mapped;
    }
    return Mapping(gpu, address, bytes);
  }
  Mapping(Mapping&& other) noexcept
      : gpu_(std::exchange(other.gpu_, nullptr)), address_(other.address_), bytes_(other.bytes_) {}
  Mapping& operator=(Mapping&&) = delete;
  ~Mapping() {
    if (gpu_ == nullptr) return;
    (void)gpu_->MemUnmap(address_, bytes_);
    (void)gpu_->MemAddressFree(address_, bytes_);
  }

  CUdeviceptr address() const { return address_; }
  Status allow(CUmemAccess_flags flags) const {
    const CUmemAccessDesc access{location(), flags};
    return gpu_->MemSetAccess(address_, bytes_, &access, size_t{1});
  }
  static CUmemLocation location() {
    CUmemLocation first{};
    first.type = CU_MEM_LOCATION_TYPE_DEVICE;
    return first;
  }

 private:
  Mapping(const Gpu& gpu, CUdeviceptr address, size_t bytes)
      : gpu_(&gpu), address_(address), bytes_(bytes) {}

  const Gpu* gpu_;
  CUdeviceptr address_;
  size_t bytes_;
};

CUmemAllocationProp exportable() {
  CUmemAllocationProp properties{};
  properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.location = Mapping::location();
  properties.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
  return properties;
}

// Whether a network card could read the memory, and why not.
std::string dma_buf_of(const Gpu& gpu, const Mapping& mapping, size_t bytes) {
  int descriptor = -1;
  const Status status =
      gpu.MemGetHandleForAddressRange(static_cast<void*>(&descriptor), mapping.address(), bytes,
                                      CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD, 0ULL);
  const Fd owned(descriptor);
  return status.is_ok() ? "yes" : status.message();
}

}  // namespace

Status probe_export(const Gpu& gpu, const Say& say, const std::string& program) {
  const CUmemAllocationProp properties = exportable();
  size_t granularity = 0;
  BRAID_RETURN_IF_ERROR(
      gpu.MemGetAllocationGranularity(&granularity, &properties, CU_MEM_ALLOC_GRANULARITY_MINIMUM));
  const size_t bytes = kExportedBytes / granularity * granularity;
  CUmemGenericAllocationHandle handle = 0;
  BRAID_RETURN_IF_ERROR(gpu.MemCreate(&handle, bytes, &properties, 0ULL));
  const Allocation allocation(gpu, handle);
  Result<Mapping> mapping = Mapping::make(gpu, allocation, bytes);
  if (!mapping.is_ok()) return mapping.status();
  BRAID_RETURN_IF_ERROR(mapping->allow(CU_MEM_ACCESS_FLAGS_PROT_READWRITE));
  BRAID_RETURN_IF_ERROR(gpu.MemsetD8(mapping->address(), kPattern, bytes));
  BRAID_RETURN_IF_ERROR(gpu.CtxSynchronize());
  int descriptor = -1;
  BRAID_RETURN_IF_ERROR(gpu.MemExportToShareableHandle(
      static_cast<void*>(&descriptor), handle, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0ULL));
  // The other process inherits it; SCM_RIGHTS would carry it as well.
  const Fd inherited(::dup(descriptor));
  ::close(descriptor);
  Result<Child> child =
      Child::start(program, {"import", std::to_string(inherited.get()), std::to_string(bytes)});
  if (!child.is_ok()) return child.status();
  const std::string said = child->read(kImportTimeoutMs);
  nlohmann::json row{{"test", "export"},
                     {"granularity", granularity},
                     {"dma_buf", dma_buf_of(gpu, *mapping, bytes)}};
  const nlohmann::json imported = nlohmann::json::parse(said, nullptr, false);
  row["imported"] = !imported.is_discarded();
  say(row);
  if (!imported.is_discarded()) say(imported);
  return Status::ok();
}

Status import_memory(const Gpu& gpu, const Say& say, int fd, size_t bytes) {
  const Stopwatch watch;
  CUmemGenericAllocationHandle handle = 0;
  // NOLINTNEXTLINE(performance-no-int-to-ptr): the driver takes a descriptor this way
  auto* const descriptor = reinterpret_cast<void*>(static_cast<intptr_t>(fd));
  BRAID_RETURN_IF_ERROR(gpu.MemImportFromShareableHandle(&handle, descriptor,
                                                         CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR));
  const Allocation allocation(gpu, handle);
  Result<Mapping> mapping = Mapping::make(gpu, allocation, bytes);
  if (!mapping.is_ok()) return mapping.status();
  const bool is_read_only = mapping->allow(CU_MEM_ACCESS_FLAGS_PROT_READ).is_ok();
  if (!is_read_only) {
    BRAID_RETURN_IF_ERROR(mapping->allow(CU_MEM_ACCESS_FLAGS_PROT_READWRITE));
  }
  const double import_ms = watch.ms();
  Result<SharedMemory> host = SharedMemory::make(bytes, Pages::Huge);
  if (!host.is_ok()) return host.status();
  Result<Registration> registration = register_memory(gpu, host->data(), bytes);
  if (!registration.is_ok()) return registration.status();
  Result<Stream> stream = make_stream(gpu);
  if (!stream.is_ok()) return stream.status();
  const Stopwatch copy;
  BRAID_RETURN_IF_ERROR(gpu.MemcpyDtoHAsync(static_cast<void*>(host->data()), mapping->address(),
                                            bytes, stream->get()));
  BRAID_RETURN_IF_ERROR(gpu.StreamSynchronize(stream->get()));
  const double rate = static_cast<double>(bytes) / copy.seconds() / 1e9;
  say({{"test", "import"},
       {"ms", import_ms},
       {"read_only_access", is_read_only},
       {"d2h_gb_s", rate},
       {"right", host->data()[bytes - 1] == static_cast<char>(kPattern)}});
  return Status::ok();
}

}  // namespace braid::gpu_probe
