// SPDX-License-Identifier: Apache-2.0
#include "bench/collective_bench.h"

#include <algorithm>
#include <cstdio>
#include <optional>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <time.h>

#include "base/clock.h"
#include "bench/collective_check.h"
#include "bench/operation_counts.h"
#include "bench/pattern.h"
#include "bench/ranks.h"
#include "bench/trainer.h"
#include "client/status_client.h"

namespace braid::bench {
namespace {

constexpr uint32_t kStatusTimeoutMs = 10'000;
// Beside the largest input: libbraid's first arena, which has the small inputs of Ranks, and the
// table of an all-to-all, which must lie in the input's own.
constexpr uint64_t kArenaSlackBytes = 18 << 20;

// What all threads of this process have used so far, user and system time, in seconds.
double process_cpu_seconds() {
  timespec t{};
  ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_nsec) / 1e9;
}

void print(const std::string& text) {
  std::printf("%s\n", text.c_str());
  std::fflush(stdout);  // a line as soon as it is known, also into a pipe
}

// The most that a rank gives, of all sizes.
uint64_t input_bytes_max(const CollectiveOptions& options) {
  const CollectiveSetup& setup = options.setup;
  const std::vector<uint64_t>& sizes = options.course.sizes;
  const uint64_t count = setup.count_of(*std::max_element(sizes.begin(), sizes.end()));
  return setup.input_count(count) * element_bytes(setup.dtype);
}

class CollectiveBench {
 public:
  CollectiveBench(const CollectiveOptions& options, const Environment& environment,
                  Trainer& trainer, Ranks ranks, Pattern pattern)
      : options_(options),
        environment_(environment),
        trainer_(trainer),
        ranks_(std::move(ranks)),
        pattern_(std::move(pattern)) {}

  Status run() {
    const auto tensor = trainer_.register_tensor({"bench.collective", BRAID_UINT8, 0, true});
    if (!tensor) return tensor.status();
    tensor_ = *tensor;
    if (const uint64_t bytes = input_bytes_max(options_)) {
      auto memory = trainer_.allocate(bytes);
      if (!memory) return memory.status();
      input_ = std::move(memory).value();
    }
    if (options_.counts) {
      auto counter =
          OperationCounter::create(environment_, daemon_socket_path(options_.socket_path));
      if (!counter) return counter.status();
      counter_.emplace(std::move(counter).value());
    }
    for (const uint64_t bytes : options_.course.sizes) {
      Measurement measurement;
      measurement.bytes = bytes;
      measurement.count = setup().count_of(bytes);
      BRAID_RETURN_IF_ERROR(measure(measurement));
      bus_bandwidths_.push_back(bus_bandwidth(setup(), measurement));
      if (measurement.wrong.value_or(0) > 0) ++out_of_bounds_;
      if (setup().rank == 0) BRAID_RETURN_IF_ERROR(tell(measurement));
    }
    if (setup().rank == 0 && !options_.as_json) print(table_end(bus_bandwidths_, out_of_bounds_));
    if (out_of_bounds_ == 0) return Status::ok();
    return make_status(StatusCode::Internal, "{} of {} sizes had wrong results", out_of_bounds_,
                       options_.course.sizes.size());
  }

 private:
  const CollectiveSetup& setup() const { return options_.setup; }

  Status measure(Measurement& measurement) {
    const uint64_t input_count = setup().input_count(measurement.count);
    pattern_.fill(checked_, input_.get(), input_count);
    const Course& course = options_.course;
    for (uint32_t i = 0; i < course.warmup + course.iterations; ++i) {
      Verdict verdict;
      double cpu_seconds = 0;
      BRAID_RETURN_IF_ERROR(iterate(measurement.count, verdict, cpu_seconds));
      BRAID_RETURN_IF_ERROR(ranks_.agree(verdict));
      if (i < course.warmup) continue;
      measurement.seconds.push_back(verdict.seconds);
      measurement.cpu_seconds += cpu_seconds;
    }
    BRAID_RETURN_IF_ERROR(ranks_.sum(measurement.cpu_seconds));
    if (counter_) BRAID_RETURN_IF_ERROR(count(measurement));
    return course.checks == 0 ? Status::ok() : check(measurement);
  }

  // The processor time leaves out what only a benchmark does: telling the others its time.
  Status iterate(uint64_t count, Verdict& verdict, double& cpu_seconds) {
    const double cpu_begin = process_cpu_seconds();
    BRAID_RETURN_IF_ERROR(ranks_.barrier());
    braid_ticket ticket = 0;
    const uint64_t begin_ns = clock_.now_ns();
    BRAID_RETURN_IF_ERROR(trainer_.run(operation(count), ticket));
    verdict.seconds = static_cast<double>(clock_.now_ns() - begin_ns) / 1e9;
    cpu_seconds = process_cpu_seconds() - cpu_begin;
    return trainer_.release(ticket);
  }

  // Operations in a row, without what makes up the rest of an iteration.
  Status count(Measurement& measurement) {
    BRAID_RETURN_IF_ERROR(ranks_.barrier());
    BRAID_RETURN_IF_ERROR(counter_->begin());
    for (uint32_t i = 0; i < options_.course.iterations; ++i) {
      braid_ticket ticket = 0;
      BRAID_RETURN_IF_ERROR(trainer_.run(operation(measurement.count), ticket));
      BRAID_RETURN_IF_ERROR(trainer_.release(ticket));
    }
    BRAID_RETURN_IF_ERROR(counter_->end());
    auto counts = counter_->share(ranks_, options_.course.iterations);
    if (!counts) return counts.status();
    measurement.counts = std::move(counts).value();
    return Status::ok();
  }

  Status check(Measurement& measurement) {
    double wrong = 0;
    for (uint32_t i = 0; i < options_.course.checks; ++i) {
      const double cpu_begin = process_cpu_seconds();
      ++checked_;
      pattern_.fill(checked_, input_.get(), setup().input_count(measurement.count));
      const double filled = process_cpu_seconds();
      braid_ticket ticket = 0;
      BRAID_RETURN_IF_ERROR(trainer_.run(operation(measurement.count), ticket));
      const double done = process_cpu_seconds();
      BRAID_RETURN_IF_ERROR(compare(ticket, measurement.count, wrong));
      measurement.checking_cpu_seconds += filled - cpu_begin + process_cpu_seconds() - done;
      BRAID_RETURN_IF_ERROR(trainer_.release(ticket));
    }
    BRAID_RETURN_IF_ERROR(ranks_.sum(measurement.checking_cpu_seconds));
    BRAID_RETURN_IF_ERROR(ranks_.sum(wrong));
    measurement.wrong = static_cast<uint64_t>(wrong);
    return Status::ok();
  }

  // Adds this rank's wrong elements to `wrong`, and names the first one.
  Status compare(braid_ticket ticket, uint64_t count, double& wrong) const {
    const size_t element = element_bytes(setup().dtype);
    const bool is_apart = setup().kind.collective == Collective::AllGather;
    const void* whole = nullptr;
    if (!is_apart) {
      const auto result = trainer_.result(ticket, setup().result_count(count) * element);
      if (!result) return result.status();
      whole = *result;
    }
    bool is_named = false;
    for (const ResultBlock& block : blocks_of(setup(), count)) {
      const void* data = static_cast<const uint8_t*>(whole) + block.at * element;
      if (is_apart) {
        const auto part = trainer_.result_of_rank(ticket, *block.rank, block.count * element);
        if (!part) return part.status();
        data = *part;
      }
      const auto mismatch = verify(pattern_, checked_, block, data);
      if (!mismatch) continue;
      wrong += static_cast<double>(mismatch->wrong);
      if (!std::exchange(is_named, true)) name(*mismatch, count, block.at);
    }
    return Status::ok();
  }

  void name(const Pattern::Mismatch& mismatch, uint64_t count, uint64_t at) const {
    const std::string text = fmt::format(
        "braid-bench: rank {}: wrong result: {} of {} bytes: element {} is {} instead of {}\n",
        setup().rank, setup().kind.name, setup().bytes_of(count), at + mismatch.index,
        mismatch.actual, mismatch.expected);
    std::fputs(text.c_str(), stderr);
  }

  braid_operation operation(uint64_t count) {
    braid_operation operation{};
    operation.struct_size = sizeof(operation);
    operation.collective = static_cast<uint32_t>(setup().kind.collective);
    operation.tensor = tensor_;
    operation.step = step_++;
    operation.reduction = static_cast<uint32_t>(setup().reduction);
    operation.root = setup().root;
    operation.dtype = static_cast<uint32_t>(setup().dtype);
    operation.count = count;
    operation.input = input_.get();
    return operation;
  }

  Status tell(const Measurement& measurement) {
    const auto json = query_status(daemon_socket_path(options_.socket_path), kStatusTimeoutMs);
    if (!json) return json.status();
    const auto status = parse_status(*json);
    if (!status) return status.status();
    const auto around = surroundings_of(*status, environment_.job_name);
    if (!around) return around.status();
    if (options_.as_json) {
      print(to_json(setup(), measurement, *around));
      return Status::ok();
    }
    if (bus_bandwidths_.size() == 1) print(table_heading(setup(), options_.course, *around));
    print(table_row(setup(), measurement));
    if (measurement.counts) print(counts_lines(*measurement.counts));
    return Status::ok();
  }

  const CollectiveOptions& options_;
  const Environment& environment_;
  Trainer& trainer_;
  Ranks ranks_;
  std::optional<OperationCounter> counter_;  // where it was asked for
  const Pattern pattern_;
  const SystemClock clock_;
  // For the largest size; none where this rank gives nothing.
  Trainer::ArenaMemory input_{nullptr, {}};
  uint32_t tensor_ = 0;
  uint64_t step_ = 0;
  uint64_t checked_ = 0;                // operations; each has data of its own
  std::vector<double> bus_bandwidths_;  // of the sizes so far
  size_t out_of_bounds_ = 0;            // sizes with wrong results
};

Result<Pattern> make_pattern(const CollectiveSetup& setup) {
  return Pattern::create(setup.dtype, setup.rank, setup.world_size, setup.reduction_if_any());
}

std::string range_of(const CollectiveOptions& options) {
  if (!options.sizes.empty()) return fmt::format("sizes {}", fmt::join(options.sizes, ","));
  const SizeRange& range = options.range;
  return fmt::format("minBytes {} maxBytes {} step: {}", range.min_bytes, range.max_bytes,
                     range.step_factor > 0 ? fmt::format("{}(factor)", range.step_factor)
                                           : fmt::format("{}(bytes)", range.step_bytes));
}

Result<std::vector<uint64_t>> settled_sizes(const CollectiveOptions& options) {
  const CollectiveSetup& setup = options.setup;
  if (!options.sizes.empty()) {
    BRAID_RETURN_IF_ERROR(setup.check_exact(options.sizes));
    return options.sizes;
  }
  const auto range = sizes_of(options.range);
  if (!range) return range.status();
  std::vector<uint64_t> sizes;
  for (const uint64_t bytes : *range) {
    if (const uint64_t count = setup.count_of(bytes)) sizes.push_back(setup.bytes_of(count));
  }
  if (!sizes.empty()) return sizes;
  return make_status(StatusCode::InvalidArgument,
                     "--maxbytes: {} bytes are too few for {} {}; use -e {} or more",
                     options.range.max_bytes, setup.world_size,
                     setup.world_size == 1 ? "rank" : "ranks", setup.bytes_least());
}

}  // namespace

Status settle(CollectiveOptions& options, const Environment& environment) {
  options.setup.rank = environment.rank;
  options.setup.world_size = environment.world_size;
  BRAID_RETURN_IF_ERROR(options.setup.check_root());
  auto sizes = settled_sizes(options);
  if (!sizes) return sizes.status();
  options.course.sizes = std::move(sizes).value();
  options.course.range = range_of(options);
  return make_pattern(options.setup).status();
}

Status run_collective(const CollectiveOptions& options, const Environment& environment) {
  auto pattern = make_pattern(options.setup);
  if (!pattern) return pattern.status();
  const auto trainer =
      Trainer::open(environment, daemon_socket_path(options.socket_path), options.timeout_ms,
                    input_bytes_max(options) + kArenaSlackBytes);
  if (!trainer) return trainer.status();
  auto ranks = Ranks::create(**trainer);
  if (!ranks) return ranks.status();
  return CollectiveBench(options, environment, **trainer, std::move(ranks).value(),
                         std::move(pattern).value())
      .run();
}

}  // namespace braid::bench
