// SPDX-License-Identifier: Apache-2.0
#include "bench/ranks.h"

#include <cstring>

namespace braid::bench {
namespace {

constexpr uint64_t kVerdictCount = sizeof(Verdict) / sizeof(double);

}  // namespace

Result<Ranks> Ranks::create(Trainer& trainer) {
  auto memory = trainer.allocate(sizeof(Verdict));
  if (!memory) return memory.status();
  Ranks ranks(trainer, std::move(memory).value());
  const auto barrier = trainer.register_tensor({"bench.barrier", BRAID_UINT8, 1});
  if (!barrier) return barrier.status();
  ranks.barrier_ = *barrier;
  const auto verdict = trainer.register_tensor({"bench.verdict", BRAID_FLOAT64, kVerdictCount});
  if (!verdict) return verdict.status();
  ranks.verdict_ = *verdict;
  const auto sum = trainer.register_tensor({"bench.sum", BRAID_FLOAT64, 1});
  if (!sum) return sum.status();
  ranks.sum_ = *sum;
  const auto stream = trainer.register_tensor({"bench.broadcast", BRAID_UINT8, 0, true});
  if (!stream) return stream.status();
  ranks.stream_ = *stream;
  return ranks;
}

Status Ranks::agree(Verdict& verdict) {
  BRAID_RETURN_IF_ERROR(reduce(verdict_, verdicts_++, BRAID_MAX, &verdict, sizeof(verdict)));
  if (verdict.is_wrong != 0)
    return {StatusCode::Internal, "a result was wrong on one rank or more"};
  if (verdict.digest + verdict.negative_digest != 0)
    return {StatusCode::Internal, "ranks have results that differ"};
  return Status::ok();
}

Status Ranks::sum(double& value) { return reduce(sum_, sums_++, BRAID_SUM, &value, sizeof(value)); }

Status Ranks::reduce(uint32_t tensor, uint64_t step, braid_reduction reduction, void* value,
                     size_t bytes) {
  std::memcpy(memory_.get(), value, bytes);
  braid_ticket ticket = 0;
  BRAID_RETURN_IF_ERROR(
      trainer_->run(Trainer::all_reduce(tensor, step, reduction, memory_.get()), ticket));
  const auto result = trainer_->result(ticket, bytes);
  if (!result) return result.status();
  std::memcpy(value, *result, bytes);
  return trainer_->release(ticket);
}

Status Ranks::broadcast(void* data, size_t bytes) {
  braid_operation operation{};
  operation.struct_size = sizeof(operation);
  operation.collective = BRAID_BROADCAST;
  operation.tensor = stream_;
  operation.step = broadcasts_++;
  operation.dtype = BRAID_UINT8;
  operation.count = bytes;
  operation.input = data;
  braid_ticket ticket = 0;
  BRAID_RETURN_IF_ERROR(trainer_->run(operation, ticket));
  const auto result = trainer_->result(ticket, bytes);
  if (!result) return result.status();
  std::memcpy(data, *result, bytes);
  return trainer_->release(ticket);
}

}  // namespace braid::bench
