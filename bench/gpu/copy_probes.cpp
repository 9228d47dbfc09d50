// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstdint>
#include <tuple>
#include <utility>

#include <sys/mman.h>

#include "bench/gpu/host_memory.h"
#include "bench/gpu/probes.h"
#include "bench/gpu/stopwatch.h"

namespace braid::gpu_probe {
namespace {

constexpr size_t kRegisteredBytes = 256U << 20;
constexpr size_t kCopiedBytes = 64U << 20;
constexpr size_t kSizes[] = {4U << 10, 64U << 10, 1U << 20, 4U << 20, 16U << 20, kCopiedBytes};
constexpr double kGiga = 1e9;
constexpr double kRegisteredPerGib = 4;

enum class Kind : uint8_t { Pageable, SmallPages, HugePages, ReadOnly };
constexpr std::pair<Kind, const char*> kKinds[] = {{Kind::Pageable, "not registered"},
                                                   {Kind::SmallPages, "small pages"},
                                                   {Kind::HugePages, "huge pages"},
                                                   {Kind::ReadOnly, "read-only mapping"}};

// Another mapping of the same memory, without the right to write.
class ReadOnlyView {
 public:
  explicit ReadOnlyView(const SharedMemory& memory)
      : bytes_(memory.bytes()),
        data_(::mmap(nullptr, bytes_, PROT_READ, MAP_SHARED, memory.fd(), 0)) {}
  ReadOnlyView(const ReadOnlyView&) = delete;
  ReadOnlyView& operator=(const ReadOnlyView&) = delete;
  ~ReadOnlyView() {
    if (data_ != MAP_FAILED) ::munmap(data_, bytes_);
  }
  char* data() const { return data_ == MAP_FAILED ? nullptr : static_cast<char*>(data_); }

 private:
  size_t bytes_;
  void* data_;
};

// The best of three copies to the host, and of three to the GPU.
Status add_rates(const Gpu& gpu, char* data, bool is_written, nlohmann::json& row) {
  Result<DeviceMemory> device = make_device_memory(gpu, kRegisteredBytes);
  if (!device.is_ok()) return device.status();
  Result<Stream> stream = make_stream(gpu);
  if (!stream.is_ok()) return stream.status();
  double to_host = 0;
  double to_gpu = 0;
  for (int turn = 0; turn < 3; ++turn) {
    if (is_written) {
      const Stopwatch watch;
      BRAID_RETURN_IF_ERROR(gpu.MemcpyDtoHAsync(static_cast<void*>(data), device->get(),
                                                kRegisteredBytes, stream->get()));
      BRAID_RETURN_IF_ERROR(gpu.StreamSynchronize(stream->get()));
      to_host = std::max(to_host, kRegisteredBytes / watch.seconds());
    }
    const Stopwatch watch;
    BRAID_RETURN_IF_ERROR(gpu.MemcpyHtoDAsync(device->get(), static_cast<const void*>(data),
                                              kRegisteredBytes, stream->get()));
    BRAID_RETURN_IF_ERROR(gpu.StreamSynchronize(stream->get()));
    to_gpu = std::max(to_gpu, kRegisteredBytes / watch.seconds());
  }
  if (is_written) row["d2h_gb_s"] = to_host / kGiga;
  row["h2d_gb_s"] = to_gpu / kGiga;
  return Status::ok();
}

Status measure_kind(const Gpu& gpu, Kind kind, nlohmann::json& row) {
  Result<SharedMemory> memory =
      SharedMemory::make(kRegisteredBytes, kind == Kind::HugePages ? Pages::Huge : Pages::Small);
  if (!memory.is_ok()) return memory.status();
  if (kind == Kind::Pageable) return add_rates(gpu, memory->data(), true, row);
  if (kind == Kind::HugePages) row["has_huge_pages"] = memory->has_huge_pages();
  const bool is_read_only = kind == Kind::ReadOnly;
  const ReadOnlyView view(*memory);
  char* data = is_read_only ? view.data() : memory->data();
  const unsigned flags =
      CU_MEMHOSTREGISTER_PORTABLE | (is_read_only ? CU_MEMHOSTREGISTER_READ_ONLY : 0U);
  const Stopwatch watch;
  Result<Registration> registration = register_memory(gpu, data, kRegisteredBytes, flags);
  if (!registration.is_ok()) return registration.status();
  row["ms_per_gib"] = watch.ms() * kRegisteredPerGib;
  return add_rates(gpu, data, !is_read_only, row);
}

// Two streams, with memory at both ends.
struct Lanes {
  SharedMemory in, out;
  Registration in_registration, out_registration;
  DeviceMemory source, target;
  Stream to_host, to_gpu;
};

Status queue_copies(const Gpu& gpu, const Lanes& lanes, size_t bytes, bool to_host, bool to_gpu) {
  if (to_host) {
    BRAID_RETURN_IF_ERROR(gpu.MemcpyDtoHAsync(static_cast<void*>(lanes.in.data()),
                                              lanes.source.get(), bytes, lanes.to_host.get()));
  }
  if (to_gpu) {
    BRAID_RETURN_IF_ERROR(gpu.MemcpyHtoDAsync(
        lanes.target.get(), static_cast<const void*>(lanes.out.data()), bytes, lanes.to_gpu.get()));
  }
  return Status::ok();
}

Status measure_size(const Gpu& gpu, const Lanes& lanes, size_t bytes, nlohmann::json& row) {
  const int count = bytes <= (1U << 20) ? 200 : 20;
  for (const auto& [name, to_host, to_gpu] : {std::tuple{"d2h_gb_s", true, false},
                                              {"h2d_gb_s", false, true},
                                              {"both_gb_s", true, true}}) {
    BRAID_RETURN_IF_ERROR(gpu.CtxSynchronize());
    const Stopwatch watch;
    for (int i = 0; i < count; ++i) {
      BRAID_RETURN_IF_ERROR(queue_copies(gpu, lanes, bytes, to_host, to_gpu));
    }
    const double queued_us = watch.us();
    BRAID_RETURN_IF_ERROR(gpu.CtxSynchronize());
    const double ways = to_host && to_gpu ? 2 : 1;
    row[name] = static_cast<double>(bytes) * count * ways / watch.seconds() / kGiga;
    if (ways == 1) row["call_us"] = queued_us / count;
  }
  return Status::ok();
}

Result<Lanes> make_lanes(const Gpu& gpu) {
  Result<SharedMemory> in = SharedMemory::make(kCopiedBytes, Pages::Huge);
  if (!in.is_ok()) return in.status();
  Result<SharedMemory> out = SharedMemory::make(kCopiedBytes, Pages::Huge);
  if (!out.is_ok()) return out.status();
  Result<Registration> in_registration = register_memory(gpu, in->data(), kCopiedBytes);
  if (!in_registration.is_ok()) return in_registration.status();
  Result<Registration> out_registration = register_memory(gpu, out->data(), kCopiedBytes);
  if (!out_registration.is_ok()) return out_registration.status();
  Result<DeviceMemory> source = make_device_memory(gpu, kCopiedBytes);
  if (!source.is_ok()) return source.status();
  Result<DeviceMemory> target = make_device_memory(gpu, kCopiedBytes);
  if (!target.is_ok()) return target.status();
  Result<Stream> to_host = make_stream(gpu);
  if (!to_host.is_ok()) return to_host.status();
  Result<Stream> to_gpu = make_stream(gpu);
  if (!to_gpu.is_ok()) return to_gpu.status();
  return Lanes{std::move(*in),
               std::move(*out),
               std::move(*in_registration),
               std::move(*out_registration),
               std::move(*source),
               std::move(*target),
               std::move(*to_host),
               std::move(*to_gpu)};
}

}  // namespace

Status probe_registration(const Gpu& gpu, const Say& say) {
  for (const auto& [kind, name] : kKinds) {
    nlohmann::json row{{"test", "register"}, {"kind", name}};
    // What a driver refuses is a finding, too.
    if (const Status status = measure_kind(gpu, kind, row); !status)
      row["error"] = status.message();
    say(row);
  }
  return Status::ok();
}

Status probe_copies(const Gpu& gpu, const Say& say) {
  Result<Lanes> lanes = make_lanes(gpu);
  if (!lanes.is_ok()) return lanes.status();
  for (const size_t bytes : kSizes) {
    nlohmann::json row{{"test", "copy"}, {"bytes", bytes}};
    BRAID_RETURN_IF_ERROR(measure_size(gpu, *lanes, bytes, row));
    say(row);
  }
  return Status::ok();
}

}  // namespace braid::gpu_probe
