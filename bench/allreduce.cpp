// SPDX-License-Identifier: Apache-2.0
#include "bench/allreduce.h"

#include <algorithm>
#include <cstdio>

#include <time.h>

#include "base/clock.h"
#include "bench/environment.h"
#include "bench/pattern.h"
#include "bench/ranks.h"
#include "bench/report.h"
#include "bench/trainer.h"
#include "client/status_client.h"

namespace braid::bench {
namespace {

constexpr uint32_t kStatusTimeoutMs = 10'000;
constexpr uint64_t kArenaSlackBytes = 1 << 20;

// What all threads of this process have used so far, user and system time, in seconds.
double process_cpu_seconds() {
  timespec t{};
  ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_nsec) / 1e9;
}

class AllReduceBench {
 public:
  AllReduceBench(const AllReduceOptions& options, const Environment& environment, Trainer& trainer,
                 Ranks ranks, Pattern pattern)
      : options_(options),
        environment_(environment),
        trainer_(trainer),
        ranks_(std::move(ranks)),
        pattern_(std::move(pattern)) {}

  Status run() {
    BRAID_RETURN_IF_ERROR(prepare());
    for (size_t i = 0; i < options_.sizes.size(); ++i) {
      Measurement measurement;
      BRAID_RETURN_IF_ERROR(measure(i, measurement));
      if (environment_.rank != 0) continue;
      BRAID_RETURN_IF_ERROR(ask_daemon(measurement));
      print(measurement, i == 0);
    }
    return Status::ok();
  }

 private:
  // All tensors at once, before anything is measured.
  Status prepare() {
    for (size_t i = 0; i < options_.sizes.size(); ++i) {
      const auto tensor = trainer_.register_tensor({fmt::format("bench.gradient.{}", i),
                                                    static_cast<uint32_t>(options_.dtype),
                                                    count_of(options_.sizes[i])});
      if (!tensor) return tensor.status();
      tensors_.push_back(*tensor);
    }
    return Status::ok();
  }

  uint64_t count_of(uint64_t bytes) const { return bytes / element_bytes(options_.dtype); }

  Status measure(size_t which, Measurement& measurement) {
    measurement.bytes = options_.sizes[which];
    measurement.dtype = to_string(options_.dtype);
    measurement.ranks = environment_.world_size;
    const auto memory = trainer_.allocate(measurement.bytes);
    if (!memory) return memory.status();
    for (uint64_t i = 0; i < options_.warmup + options_.iterations; ++i) {
      Verdict verdict;
      double cpu_seconds = 0;
      const double cpu_begin = process_cpu_seconds();
      BRAID_RETURN_IF_ERROR(iterate(which, i, memory->get(), verdict, cpu_seconds));
      measurement.checking_cpu_seconds += process_cpu_seconds() - cpu_begin - cpu_seconds;
      BRAID_RETURN_IF_ERROR(ranks_.agree(verdict));
      if (i < options_.warmup) continue;
      measurement.seconds.push_back(verdict.seconds);
      measurement.cpu_seconds += cpu_seconds;
    }
    BRAID_RETURN_IF_ERROR(ranks_.sum(measurement.checking_cpu_seconds));
    return ranks_.sum(measurement.cpu_seconds);
  }

  // The processor time leaves out what only a benchmark does: filling in the input, checking the
  // result.
  Status iterate(size_t which, uint64_t iteration, void* input, Verdict& verdict,
                 double& cpu_seconds) {
    const uint64_t bytes = options_.sizes[which];
    pattern_.fill(iteration, input, count_of(bytes));
    const double cpu_begin = process_cpu_seconds();
    BRAID_RETURN_IF_ERROR(ranks_.barrier());
    braid_ticket ticket = 0;
    const uint64_t begin_ns = clock_.now_ns();
    BRAID_RETURN_IF_ERROR(
        trainer_.run(Trainer::all_reduce(tensors_[which], iteration, BRAID_SUM, input), ticket));
    verdict.seconds = static_cast<double>(clock_.now_ns() - begin_ns) / 1e9;
    cpu_seconds = process_cpu_seconds() - cpu_begin;
    const auto result = trainer_.result(ticket, bytes);
    if (!result) return result.status();
    if (const auto mismatch = pattern_.verify(iteration, *result, count_of(bytes))) {
      verdict.is_wrong = 1;
      std::fprintf(stderr,
                   "braid-bench: rank %u: wrong result: %llu bytes, iteration %llu: element %llu "
                   "is %s instead of %s\n",
                   environment_.rank, static_cast<unsigned long long>(bytes),
                   static_cast<unsigned long long>(iteration),
                   static_cast<unsigned long long>(mismatch->index), mismatch->actual.c_str(),
                   mismatch->expected.c_str());
    }
    return trainer_.release(ticket);
  }

  Status ask_daemon(Measurement& measurement) const {
    const auto json = query_status(daemon_socket_path(options_.socket_path), kStatusTimeoutMs);
    if (!json) return json.status();
    const auto status = parse_status(*json);
    if (!status) return status.status();
    return describe(*status, environment_.job_name, measurement);
  }

  void print(const Measurement& measurement, bool is_first) const {
    std::string text;
    if (options_.as_json) {
      text = to_json(measurement);
    } else {
      text = (is_first ? table_heading(measurement) + "\n" : "") + table_row(measurement);
    }
    std::printf("%s\n", text.c_str());
    std::fflush(stdout);  // a line as soon as it is known, also into a pipe
  }

  const AllReduceOptions& options_;
  const Environment& environment_;
  Trainer& trainer_;
  Ranks ranks_;
  const Pattern pattern_;
  const SystemClock clock_;
  std::vector<uint32_t> tensors_;
};

Status check_sizes(const AllReduceOptions& options) {
  const uint64_t element = element_bytes(options.dtype);
  for (const uint64_t bytes : options.sizes) {
    if (bytes % element == 0) continue;
    return make_status(StatusCode::InvalidArgument,
                       "--sizes: {} is not a multiple of the {} bytes of one {}; use {}", bytes,
                       element, to_string(options.dtype), bytes / element * element + element);
  }
  return Status::ok();
}

}  // namespace

Result<DataType> parse_dtype(const std::string& name) {
  std::string known;
  for (uint8_t i = 0; i < kDataTypeCount; ++i) {
    const auto dtype = static_cast<DataType>(i);
    if (name == to_string(dtype)) return dtype;
    known += std::string(i == 0 ? "" : ", ") + to_string(dtype);
  }
  return make_status(StatusCode::InvalidArgument, "--dtype: '{}' is none of {}", name, known);
}

Status run_all_reduce(const AllReduceOptions& options) {
  BRAID_RETURN_IF_ERROR(check_sizes(options));
  const auto environment = read_environment();
  if (!environment) return environment.status();
  auto pattern = Pattern::create(options.dtype, environment->rank, environment->world_size);
  if (!pattern) return pattern.status();
  const uint64_t arena_bytes =
      *std::max_element(options.sizes.begin(), options.sizes.end()) + kArenaSlackBytes;
  const auto trainer = Trainer::open(*environment, daemon_socket_path(options.socket_path),
                                     options.timeout_ms, arena_bytes);
  if (!trainer) return trainer.status();
  auto ranks = Ranks::create(**trainer);
  if (!ranks) return ranks.status();
  return AllReduceBench(options, *environment, **trainer, std::move(ranks).value(),
                        std::move(pattern).value())
      .run();
}

}  // namespace braid::bench
