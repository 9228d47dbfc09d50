// SPDX-License-Identifier: Apache-2.0
#include "bench/trainer.h"

namespace braid::bench {
namespace {

Status check(int error) {
  if (error == BRAID_OK) return Status::ok();
  return {static_cast<StatusCode>(error), braid_error_message()};  // the numbers are the same
}

Status check_size(size_t expected, size_t actual) {
  if (actual == expected) return Status::ok();
  return make_status(StatusCode::Internal, "the result has {} bytes instead of {}", actual,
                     expected);
}

}  // namespace

Result<std::unique_ptr<Trainer>> Trainer::open(const Environment& environment,
                                               const std::string& socket_path, uint32_t timeout_ms,
                                               uint64_t arena_bytes) {
  braid_job_options options{};
  options.struct_size = sizeof(options);
  options.socket_path = socket_path.c_str();
  options.name = environment.job_name.c_str();
  options.rank = environment.rank;
  options.world_size = environment.world_size;
  options.master_address = environment.master_address.c_str();
  options.timeout_ms = timeout_ms;
  options.arena_bytes = arena_bytes;
  braid_job* job = nullptr;
  BRAID_RETURN_IF_ERROR(check(braid_open(&options, &job)));
  return std::unique_ptr<Trainer>(new Trainer(job));
}

Trainer::~Trainer() { (void)braid_close(job_); }

Result<uint32_t> Trainer::register_tensor(const Tensor& tensor) {
  const auto handles = register_tensors({&tensor, 1});
  if (!handles) return handles.status();
  return handles->front();
}

Result<std::vector<uint32_t>> Trainer::register_tensors(std::span<const Tensor> tensors) {
  std::vector<braid_tensor_options> list;
  for (const Tensor& tensor : tensors) {
    braid_tensor_options& options = list.emplace_back();
    options.struct_size = sizeof(options);
    options.name = tensor.name.c_str();
    options.dtype = tensor.dtype;
    options.count = tensor.count;
    options.backward_order =
        tensors.size() == 1 ? BRAID_NO_ORDER : static_cast<uint32_t>(list.size() - 1);
    options.dynamic = tensor.is_dynamic ? 1 : 0;
    options.planned = tensor.is_planned ? 1 : 0;
    options.codec = tensor.codec.empty() ? nullptr : tensor.codec.c_str();
  }
  std::vector<uint32_t> handles(list.size());
  BRAID_RETURN_IF_ERROR(check(braid_register(job_, list.data(), list.size(), handles.data())));
  return handles;
}

Result<Trainer::ArenaMemory> Trainer::allocate(size_t bytes) {
  void* memory = nullptr;
  BRAID_RETURN_IF_ERROR(check(braid_allocate(job_, bytes, &memory)));
  return ArenaMemory(memory, FreeArena{job_});
}

Status Trainer::run(const braid_operation& operation, braid_ticket& ticket) {
  BRAID_RETURN_IF_ERROR(submit(operation, ticket));
  return wait(ticket);
}

braid_operation Trainer::all_reduce(uint32_t tensor, uint64_t step, braid_reduction reduction,
                                    const void* input) {
  braid_operation operation{};
  operation.struct_size = sizeof(operation);
  operation.collective = BRAID_ALL_REDUCE;
  operation.tensor = tensor;
  operation.step = step;
  operation.reduction = reduction;
  operation.input = input;
  return operation;
}

Result<const void*> Trainer::result(braid_ticket ticket, size_t bytes) {
  const void* data = nullptr;
  size_t actual = 0;
  BRAID_RETURN_IF_ERROR(check(braid_result(job_, ticket, &data, &actual)));
  BRAID_RETURN_IF_ERROR(check_size(bytes, actual));
  return data;
}

Result<const void*> Trainer::result_of_rank(braid_ticket ticket, uint32_t rank, size_t bytes) {
  const void* data = nullptr;
  size_t actual = 0;
  BRAID_RETURN_IF_ERROR(check(braid_result_of_rank(job_, ticket, rank, &data, &actual)));
  BRAID_RETURN_IF_ERROR(check_size(bytes, actual));
  return data;
}

Status Trainer::submit(const braid_operation& operation, braid_ticket& ticket) {
  return check(braid_submit(job_, &operation, &ticket));
}

Status Trainer::wait(braid_ticket ticket) { return check(braid_wait(job_, ticket, 0)); }

Status Trainer::release(braid_ticket ticket) { return check(braid_release(job_, ticket)); }

Status Trainer::barrier(uint32_t tensor, uint64_t step) {
  braid_operation operation{};
  operation.struct_size = sizeof(operation);
  operation.collective = BRAID_BARRIER;
  operation.tensor = tensor;
  operation.step = step;
  braid_ticket ticket = 0;
  BRAID_RETURN_IF_ERROR(run(operation, ticket));
  return release(ticket);
}

Status Trainer::queue(const braid_operation& operation, const braid_device_buffers& buffers) {
  braid_ticket ticket = 0;
  BRAID_RETURN_IF_ERROR(check(braid_submit_device(job_, &operation, &buffers, &ticket)));
  BRAID_RETURN_IF_ERROR(check(braid_stream_wait(job_, ticket, buffers.stream)));
  return check(braid_device_release(job_, ticket));
}

}  // namespace braid::bench
