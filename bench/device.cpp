// SPDX-License-Identifier: Apache-2.0
#include "bench/device.h"

#include <algorithm>
#include <cstdio>
#include <memory>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/clock.h"
#include "bench/environment.h"
#include "bench/gpu/gpu.h"
#include "bench/gpu/handles.h"
#include "bench/pattern.h"
#include "bench/ranks.h"
#include "bench/report.h"
#include "bench/trainer.h"
#include "client/status_client.h"

namespace braid::bench {
namespace {

using gpu_probe::DeviceMemory;
using gpu_probe::Gpu;
using gpu_probe::Stream;

constexpr uint64_t kFloatBytes = 4;
constexpr uint64_t kRoomBesideBytes = 160 << 20;  // libbraid's own, too: docs/gpu.md
// Few enough for every driver's queue: none of the calls waits for room.
constexpr int kCallsAtOnce = 32;
constexpr int kCallRounds = 20;

// One way of an all-reduce, in seconds; all iterations.
struct Times {
  std::vector<double> held;   // from the first call to the last one's return; of rank 0
  std::vector<double> there;  // from the first call until the slowest rank has its result
};

struct DeviceFigures {
  uint64_t bytes = 0;
  uint32_t ranks = 1;
  double call_seconds = 0;
  Times device;
  Times host;
};

std::string device_json(const DeviceFigures& figures) {
  nlohmann::ordered_json json;
  json["bytes"] = figures.bytes;
  json["ranks"] = figures.ranks;
  json["driver_call_seconds"] = figures.call_seconds;
  const auto add = [&json](const std::string& way, const Times& times) {
    json[way + "_held_median_seconds"] = median(times.held);
    json[way + "_held_p99_seconds"] = p99(times.held);
    json[way + "_median_seconds"] = median(times.there);
    json[way + "_p99_seconds"] = p99(times.there);
  };
  add("device", figures.device);
  add("host", figures.host);
  return json.dump();
}

std::string device_heading(const DeviceFigures& first) {
  return fmt::format(
      "# all-reduce of float32, medians; ranks: {}; a call of CUDA's driver: {}\n{:>14} {:>12} "
      "{:>12} {:>12} {:>12} {:>12}",
      first.ranks, format_seconds(first.call_seconds), "bytes", "GPU: held", "held p99", "there",
      "CPU: held", "there");
}

std::string device_row(const DeviceFigures& figures) {
  return fmt::format(
      "{:>14} {:>12} {:>12} {:>12} {:>12} {:>12}", figures.bytes,
      format_seconds(median(figures.device.held)), format_seconds(p99(figures.device.held)),
      format_seconds(median(figures.device.there)), format_seconds(median(figures.host.held)),
      format_seconds(median(figures.host.there)));
}

class DeviceBench {
 public:
  DeviceBench(const DeviceOptions& options, const Environment& environment, Trainer& trainer,
              Ranks ranks, Pattern pattern, const Gpu& gpu, Stream stream)
      : options_(options),
        environment_(environment),
        trainer_(trainer),
        ranks_(std::move(ranks)),
        pattern_(std::move(pattern)),
        gpu_(gpu),
        stream_(std::move(stream)) {}

  Status run() {
    BRAID_RETURN_IF_ERROR(register_tensor("bench.device", device_tensor_));
    BRAID_RETURN_IF_ERROR(register_tensor("bench.host", host_tensor_));
    double call_seconds = 0;
    BRAID_RETURN_IF_ERROR(measure_call(call_seconds));
    for (size_t i = 0; i < options_.sizes.size(); ++i) {
      DeviceFigures figures;
      figures.bytes = options_.sizes[i];
      figures.ranks = environment_.world_size;
      figures.call_seconds = call_seconds;
      BRAID_RETURN_IF_ERROR(measure(figures));
      if (environment_.rank != 0) continue;
      const std::string heading = i == 0 ? device_heading(figures) + "\n" : "";
      std::printf("%s\n", options_.as_json ? device_json(figures).c_str()
                                           : (heading + device_row(figures)).c_str());
      std::fflush(stdout);  // a line as soon as it is known, also into a pipe
    }
    return {};
  }

 private:
  Status register_tensor(const char* name, uint32_t& handle) {
    const auto tensor = trainer_.register_tensor({name, BRAID_FLOAT32, 0, true});
    if (!tensor) return tensor.status();
    handle = *tensor;
    return {};
  }

  // What the driver itself takes for a call that queues something: all else is braid's.
  Status measure_call(double& seconds) {
    const auto event = gpu_probe::make_event(gpu_);
    if (!event) return event.status();
    std::vector<double> rounds;
    for (int i = 0; i < kCallRounds; ++i) {
      const uint64_t begin_ns = clock_.now_ns();
      for (int call = 0; call < kCallsAtOnce; ++call)
        BRAID_RETURN_IF_ERROR(gpu_.EventRecord(event->get(), stream_.get()));
      rounds.push_back(seconds_since(begin_ns) / kCallsAtOnce);
      BRAID_RETURN_IF_ERROR(gpu_.StreamSynchronize(stream_.get()));
    }
    seconds = median(std::move(rounds));
    return {};
  }

  Status measure(DeviceFigures& figures) {
    const auto host = trainer_.allocate(figures.bytes);
    if (!host) return host.status();
    const auto device = gpu_probe::make_device_memory(gpu_, figures.bytes);
    if (!device) return device.status();
    std::vector<float> result(figures.bytes / kFloatBytes);
    for (uint64_t i = 0; i < options_.warmup + options_.iterations; ++i, ++iteration_) {
      Verdict of_device;
      double held = 0;
      pattern_.fill(iteration_, host->get(), result.size());
      BRAID_RETURN_IF_ERROR(
          reduce_on_device(host->get(), device->get(), result, held, of_device.seconds));
      check(result.data(), result.size(), of_device);
      BRAID_RETURN_IF_ERROR(ranks_.agree(of_device));
      Verdict of_host;
      double host_held = 0;
      BRAID_RETURN_IF_ERROR(reduce_on_host(host->get(), result.size(), host_held, of_host));
      BRAID_RETURN_IF_ERROR(ranks_.agree(of_host));
      if (i < options_.warmup) continue;
      figures.device.held.push_back(held);
      figures.device.there.push_back(of_device.seconds);
      figures.host.held.push_back(host_held);
      figures.host.there.push_back(of_host.seconds);
    }
    return {};
  }

  Status reduce_on_device(const void* input, CUdeviceptr device, std::vector<float>& result,
                          double& held, double& there) {
    const size_t bytes = result.size() * kFloatBytes;
    const CUstream stream = stream_.get();
    BRAID_RETURN_IF_ERROR(gpu_.MemcpyHtoDAsync(device, input, bytes, stream));
    BRAID_RETURN_IF_ERROR(gpu_.StreamSynchronize(stream));
    const braid_operation operation = sum_of(device_tensor_, 0, nullptr, result.size());
    braid_device_buffers buffers{};
    buffers.struct_size = sizeof(buffers);
    buffers.input = buffers.result = device;
    buffers.stream = stream;
    buffers.flags = BRAID_DEVICE_STREAM_WAITS;
    BRAID_RETURN_IF_ERROR(ranks_.barrier());
    const uint64_t begin_ns = clock_.now_ns();
    BRAID_RETURN_IF_ERROR(trainer_.queue(operation, buffers));
    held = seconds_since(begin_ns);
    BRAID_RETURN_IF_ERROR(gpu_.StreamSynchronize(stream));
    there = seconds_since(begin_ns);
    BRAID_RETURN_IF_ERROR(gpu_.MemcpyDtoHAsync(result.data(), device, bytes, stream));
    return gpu_.StreamSynchronize(stream);
  }

  Status reduce_on_host(const void* input, uint64_t count, double& held, Verdict& verdict) {
    const braid_operation operation = sum_of(host_tensor_, iteration_, input, count);
    BRAID_RETURN_IF_ERROR(ranks_.barrier());
    braid_ticket ticket = 0;
    const uint64_t begin_ns = clock_.now_ns();
    BRAID_RETURN_IF_ERROR(trainer_.submit(operation, ticket));
    held = seconds_since(begin_ns);
    BRAID_RETURN_IF_ERROR(trainer_.wait(ticket));
    verdict.seconds = seconds_since(begin_ns);
    const auto result = trainer_.result(ticket, count * kFloatBytes);
    if (!result) return result.status();
    check(*result, count, verdict);
    return trainer_.release(ticket);
  }

  static braid_operation sum_of(uint32_t tensor, uint64_t step, const void* input, uint64_t count) {
    braid_operation operation = Trainer::all_reduce(tensor, step, BRAID_SUM, input);
    operation.dtype = BRAID_FLOAT32;
    operation.count = count;
    return operation;
  }

  void check(const void* result, uint64_t count, Verdict& verdict) const {
    const auto mismatch = pattern_.verify(iteration_, result, count);
    if (!mismatch) return;
    verdict.is_wrong = 1;
    std::fprintf(stderr, "braid-bench: rank %u: wrong result: element %llu is %s instead of %s\n",
                 environment_.rank, static_cast<unsigned long long>(mismatch->index),
                 mismatch->actual.c_str(), mismatch->expected.c_str());
  }

  double seconds_since(uint64_t begin_ns) const {
    return static_cast<double>(clock_.now_ns() - begin_ns) / 1e9;
  }

  const DeviceOptions& options_;
  const Environment& environment_;
  Trainer& trainer_;
  Ranks ranks_;
  const Pattern pattern_;
  const Gpu& gpu_;
  const Stream stream_;
  const SystemClock clock_;
  uint32_t device_tensor_ = 0;
  uint32_t host_tensor_ = 0;
  uint64_t iteration_ = 0;
};

Status check_float_sizes(const std::vector<uint64_t>& sizes) {
  for (const uint64_t bytes : sizes) {
    if (bytes % kFloatBytes == 0 && bytes != 0) continue;
    return make_status(StatusCode::InvalidArgument,
                       "--sizes: {} is no multiple of the 4 bytes of one float32; use {}", bytes,
                       bytes / kFloatBytes * kFloatBytes + kFloatBytes);
  }
  return {};
}

}  // namespace

Status run_device(const DeviceOptions& options) {
  BRAID_RETURN_IF_ERROR(check_float_sizes(options.sizes));
  const auto gpu = Gpu::open();
  if (!gpu) return gpu.status().with_context("there is no GPU that can be used");
  auto stream = gpu_probe::make_stream(**gpu);
  if (!stream) return stream.status();
  const auto environment = read_environment();
  if (!environment) return environment.status();
  auto pattern = Pattern::create(DataType::Float32, environment->rank, environment->world_size);
  if (!pattern) return pattern.status();
  const uint64_t arena_bytes =
      *std::max_element(options.sizes.begin(), options.sizes.end()) + kRoomBesideBytes;
  const auto trainer = Trainer::open(*environment, daemon_socket_path(options.socket_path),
                                     options.timeout_ms, arena_bytes);
  if (!trainer) return trainer.status();
  auto ranks = Ranks::create(**trainer);
  if (!ranks) return ranks.status();
  return DeviceBench(options, *environment, **trainer, std::move(ranks).value(),
                     std::move(pattern).value(), **gpu, std::move(stream).value())
      .run();
}

}  // namespace braid::bench
