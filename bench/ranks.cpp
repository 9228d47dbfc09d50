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
  const auto stream = trainer.register_tensor({"bench.broadcast", BRAID_UINT8, 0, true});
  if (!stream) return stream.status();
  ranks.stream_ = *stream;
  return ranks;
}

Status Ranks::agree(Verdict& verdict) {
  std::memcpy(memory_.get(), &verdict, sizeof(verdict));
  braid_ticket ticket = 0;
  BRAID_RETURN_IF_ERROR(
      trainer_->all_reduce(verdict_, verdicts_++, BRAID_MAX, memory_.get(), ticket));
  const auto result = trainer_->result(ticket, sizeof(verdict));
  if (!result) return result.status();
  std::memcpy(&verdict, *result, sizeof(verdict));
  BRAID_RETURN_IF_ERROR(trainer_->release(ticket));
  if (verdict.is_wrong != 0)
    return {StatusCode::Internal, "a result was wrong on one rank or more"};
  return Status::ok();
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
