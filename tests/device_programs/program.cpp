// SPDX-License-Identifier: Apache-2.0
#include "program.h"

#include <algorithm>
#include <random>

namespace braid::device_programs {
namespace {

class Choice {
 public:
  explicit Choice(uint64_t seed) : random_(seed) {}

  uint64_t below(uint64_t bound) { return random_() % bound; }
  bool one_in(uint64_t n) { return below(n) == 0; }
  template <typename Value>
  Value of(std::initializer_list<Value> values) {
    return values.begin()[below(values.size())];
  }

 private:
  std::mt19937_64 random_;
};

std::vector<std::vector<uint32_t>> groups_of(uint32_t ranks, Choice& choice) {
  std::vector<std::vector<uint32_t>> groups(1 + choice.below(3));
  for (auto& group : groups) {
    const bool has_all = &group == &groups.front();
    while (group.empty()) {
      for (uint32_t rank = 0; rank < ranks; ++rank)
        if (has_all || choice.one_in(2)) group.push_back(rank);
    }
  }
  return groups;
}

// Mostly small, some of several pieces.
uint64_t count_of(const Step& step, uint64_t size, Choice& choice) {
  constexpr uint64_t kLargeBytes = 24 << 20;
  const bool is_in_blocks =
      step.collective != BRAID_ALL_REDUCE && step.collective != BRAID_BROADCAST;
  uint64_t count = choice.of<uint64_t>({0, 1, 3, 127, 1000, 4096, 70'001});
  if (choice.one_in(8)) count = choice.below(kLargeBytes / 4);
  return is_in_blocks ? count / size : count;
}

Step step_of(const Program& program, Choice& choice) {
  Step step;
  step.group = static_cast<uint32_t>(choice.below(program.groups.size()));
  const uint64_t size = program.groups[step.group].size();
  step.collective = choice.of({BRAID_ALL_REDUCE, BRAID_ALL_REDUCE, BRAID_ALL_REDUCE,
                               BRAID_BROADCAST, BRAID_ALL_GATHER, BRAID_REDUCE_SCATTER,
                               BRAID_BARRIER, BRAID_GATHER, BRAID_SCATTER, BRAID_ALL_TO_ALL});
  step.dtype = static_cast<braid_dtype>(choice.below(BRAID_UINT8 + 1));
  step.reduction = static_cast<braid_reduction>(choice.below(BRAID_PRODUCT + 1));
  step.root = static_cast<uint32_t>(choice.below(size));
  step.count = count_of(step, size, choice);
  step.has_splits = step.collective == BRAID_ALL_TO_ALL && choice.one_in(2);
  step.are_results_apart =
      step.collective == BRAID_ALL_GATHER && step.count != 0 && choice.one_in(2);
  step.is_in_place = !step.are_results_apart && choice.one_in(2) &&
                     (step.collective == BRAID_ALL_REDUCE || step.collective == BRAID_BROADCAST ||
                      step.collective == BRAID_ALL_GATHER);
  step.stream = static_cast<uint32_t>(choice.below(kStreams));
  step.stream_waits = !choice.one_in(4);
  step.delay_us = choice.one_in(2) ? 0 : static_cast<uint32_t>(choice.below(2000));
  step.wait_after = static_cast<uint32_t>(choice.of<uint64_t>({0, 0, 1, 3}));
  step.is_released_early = step.stream_waits && choice.one_in(4);
  step.frees_beside = choice.one_in(4);
  return step;
}

}  // namespace

Program program_of(uint64_t seed, uint32_t nodes, uint32_t node_ranks) {
  Choice choice(seed);
  Program program;
  program.seed = seed;
  program.ranks = 2 + static_cast<uint32_t>(choice.below(3));
  program.node_ranks = node_ranks;
  if (node_ranks != 0) {
    program.ranks = nodes * node_ranks;
    program.settings.emplace_back("FAKE_CUDA_DEVICES", std::to_string(node_ranks));
  }
  program.groups = groups_of(program.ranks, choice);
  const uint64_t steps = 4 + choice.below(12);
  for (uint64_t i = 0; i < steps; ++i) program.steps.push_back(step_of(program, choice));
  program.settings.emplace_back("FAKE_CUDA_DRIFT", std::to_string(1 + choice.below(1'000'000)));
  if (choice.one_in(2)) program.settings.emplace_back("FAKE_CUDA_QUEUES", "1");
  if (choice.one_in(2)) program.settings.emplace_back("FAKE_CUDA_DEPTH", "8");
  if (choice.one_in(2)) program.settings.emplace_back("FAKE_CUDA_FREE", "locks");
  if (choice.one_in(4)) program.settings.emplace_back("FAKE_CUDA_COPY_GB_S", "4");
  if (choice.one_in(8)) program.settings.emplace_back("FAKE_CUDA_WORDS", "no");
  if (choice.one_in(8)) program.settings.emplace_back("BRAID_CUDA_WAIT", "host");
  return program;
}

uint64_t split_of(const Step& step, uint32_t from, uint32_t to) {
  return (step.count + from * 3 + to * 5) % (step.count + 2);
}

}  // namespace braid::device_programs
