// SPDX-License-Identifier: Apache-2.0
// A trainer in small: every rank adds up a "gradient" with all others, three steps long. Start one
// per rank:
//   RANK=0 WORLD_SIZE=2 MASTER_ADDR=127.0.0.1 braid-example-trainer
#include <cstdint>
#include <cstdio>
#include <cstdlib>

#include <braid.h>

namespace {

constexpr uint64_t kCount = 1 << 20;
constexpr uint64_t kSteps = 3;

void check(int error) {
  if (error == BRAID_OK) return;
  std::fprintf(stderr, "%s: %s\n", braid_error_name(error), braid_error_message());
  std::exit(1);
}

const char* environment(const char* name, const char* fallback) {
  const char* value = std::getenv(name);
  return value != nullptr ? value : fallback;
}

uint32_t number(const char* name, const char* fallback) {
  return static_cast<uint32_t>(std::strtoul(environment(name, fallback), nullptr, 10));
}

// What the backward pass would do.
void compute_gradient(float* gradient, uint32_t rank, uint64_t step) {
  for (uint64_t i = 0; i < kCount; ++i) gradient[i] = static_cast<float>(rank + step);
}

}  // namespace

int main() {
  braid_job_options job_options{};
  job_options.struct_size = sizeof(job_options);
  job_options.name = environment("BRAID_JOB", "example");
  job_options.rank = number("RANK", "0");
  job_options.world_size = number("WORLD_SIZE", "1");
  job_options.master_address = environment("MASTER_ADDR", "127.0.0.1");
  job_options.timeout_ms = 60'000;
  braid_job* job = nullptr;
  check(braid_open(&job_options, &job));

  braid_tensor_options tensor_options{};
  tensor_options.struct_size = sizeof(tensor_options);
  tensor_options.name = "layer.weight";
  tensor_options.dtype = BRAID_FLOAT32;
  tensor_options.count = kCount;
  uint32_t tensor = 0;
  check(braid_register(job, &tensor_options, 1, &tensor));

  // A gradient that lives in the arena is read by the daemon where it is.
  void* memory = nullptr;
  check(braid_allocate(job, kCount * sizeof(float), &memory));
  auto* gradient = static_cast<float*>(memory);

  for (uint64_t step = 0; step < kSteps; ++step) {
    compute_gradient(gradient, braid_rank(job), step);
    braid_operation operation{};
    operation.struct_size = sizeof(operation);
    operation.collective = BRAID_ALL_REDUCE;
    operation.tensor = tensor;
    operation.step = step;
    operation.reduction = BRAID_AVERAGE;
    operation.input = gradient;
    braid_ticket ticket = 0;
    check(braid_submit(job, &operation, &ticket));
    // Here a real trainer goes on with the next layer's gradient.
    check(braid_wait(job, ticket, 0));

    const void* data = nullptr;
    size_t bytes = 0;
    check(braid_result(job, ticket, &data, &bytes));
    std::printf("rank %u, step %llu: the average gradient is %g\n", braid_rank(job),
                static_cast<unsigned long long>(step), static_cast<const float*>(data)[kCount - 1]);
    check(braid_release(job, ticket));
  }
  check(braid_free(job, memory));
  check(braid_close(job));
  return 0;
}
