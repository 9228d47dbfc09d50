// SPDX-License-Identifier: Apache-2.0
#include "bench/player.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <span>

#include <time.h>

namespace braid::bench {
namespace {

constexpr uint64_t kDigestFactor = 0x9e3779b97f4a7c15;
constexpr uint32_t kDigestDropped = 12;  // bits; a double holds the others

// Until CLOCK_MONOTONIC shows `deadline_ns`. Sleeping to points in time instead of for durations,
// late wake-ups do not add up.
void sleep_until(uint64_t deadline_ns) {
  const timespec deadline{static_cast<time_t>(deadline_ns / 1'000'000'000),
                          static_cast<long>(deadline_ns % 1'000'000'000)};
  while (::clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &deadline, nullptr) == EINTR) {
  }
}

uint64_t nanoseconds(double seconds) { return static_cast<uint64_t>(seconds * 1e9); }

uint64_t digest(uint64_t before, std::span<const uint8_t> bytes) {
  for (size_t i = 0; i < bytes.size(); i += sizeof(uint64_t)) {
    uint64_t word = 0;
    std::memcpy(&word, &bytes[i], std::min(sizeof(word), bytes.size() - i));
    before = (before ^ word) * kDigestFactor;
  }
  return before;
}

}  // namespace

Result<Player> Player::create(Trainer& trainer, Ranks& ranks, Workload workload,
                              Gradients gradients, uint32_t rank) {
  auto memory = trainer.allocate(gradients.bytes());
  if (!memory) return memory.status();
  return Player(trainer, ranks, std::move(workload), std::move(gradients), rank,
                std::move(memory).value());
}

Status Player::play(const Schedule& schedule, uint64_t step, double& seconds) {
  gradients_.fill(step, static_cast<uint8_t*>(memory_.get()));
  BRAID_RETURN_IF_ERROR(ranks_->barrier());
  began_ns_ = clock_.now_ns();
  BRAID_RETURN_IF_ERROR(submit_all(schedule, step, began_ns_));
  for (const braid_ticket ticket : tickets_) BRAID_RETURN_IF_ERROR(trainer_->wait(ticket));
  Verdict verdict;
  verdict.seconds = static_cast<double>(clock_.now_ns() - began_ns_) / 1e9;
  digest_ = 0;
  for (size_t i = 0; i < tickets_.size(); ++i)
    BRAID_RETURN_IF_ERROR(check(schedule.plan.groups[i], step, tickets_[i], verdict));
  verdict.digest = static_cast<double>(digest_ >> kDigestDropped);
  verdict.negative_digest = -verdict.digest;
  BRAID_RETURN_IF_ERROR(ranks_->agree(verdict));
  seconds = verdict.seconds;
  return Status::ok();
}

Status Player::submit_all(const Schedule& schedule, uint64_t step, uint64_t begin_ns) {
  const auto* memory = static_cast<const uint8_t*>(memory_.get());
  tickets_.clear();
  for (size_t i = 0; i < schedule.plan.groups.size(); ++i) {
    const Plan::Group& group = schedule.plan.groups[i];
    const double ready_seconds =
        workload_.forward_seconds + workload_.tensors[group.end - 1].ready_seconds;
    sleep_until(begin_ns + nanoseconds(ready_seconds));
    const auto* input = memory + gradients_.tensors()[group.begin].offset;
    BRAID_RETURN_IF_ERROR(trainer_->submit(
        Trainer::all_reduce(schedule.handles[i], step, BRAID_SUM, input), tickets_.emplace_back()));
  }
  return Status::ok();
}

Status Player::check(const Plan::Group& group, uint64_t step, braid_ticket ticket,
                     Verdict& verdict) {
  const auto& tensors = gradients_.tensors();
  const uint64_t begin = tensors[group.begin].offset;
  const uint64_t end = tensors[group.end - 1].offset + tensors[group.end - 1].bytes();
  const auto result = trainer_->result(ticket, end - begin);
  if (!result) return result.status();
  if (!gradients_.has_known_sums())
    digest_ = digest(digest_, {static_cast<const uint8_t*>(*result), end - begin});
  for (uint32_t i = group.begin;
       i < group.end && verdict.is_wrong == 0 && gradients_.has_known_sums(); ++i) {
    const auto* sum = static_cast<const uint8_t*>(*result) + tensors[i].offset - begin;
    const auto mismatch = gradients_.verify(i, step, sum);
    if (!mismatch) continue;
    verdict.is_wrong = 1;
    std::fprintf(stderr,
                 "braid-bench: rank %u: wrong result: '%s', step %llu: element %llu is %s instead "
                 "of %s\n",
                 rank_, tensors[i].name.c_str(), static_cast<unsigned long long>(step),
                 static_cast<unsigned long long>(mismatch->index), mismatch->actual.c_str(),
                 mismatch->expected.c_str());
  }
  return trainer_->release(ticket);
}

}  // namespace braid::bench
