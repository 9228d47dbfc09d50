// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "messages/job_hash.h"
#include "planning/plan_book.h"

namespace braid::testing {

// The hash of the job with key 9.
inline const JobHash& test_job() {
  static const JobHash job(9);
  return job;
}

inline PlanSet::Tensor planned(const std::string& name, uint64_t count,
                               DataType dtype = DataType::Float32, uint32_t backward_order = 0) {
  return {test_job().of_name(name), std::make_shared<const std::string>(name), dtype, count,
          backward_order};
}

// 't0', 't1', … of `count` elements each, in this order of backward.
inline std::vector<PlanSet::Tensor> planned_tensors(uint32_t tensors, uint64_t count = 100) {
  std::vector<PlanSet::Tensor> result;
  for (uint32_t i = 0; i < tensors; ++i)
    result.push_back(planned("t" + std::to_string(i), count, DataType::Float32, i));
  return result;
}

// A trainer's registration, all at once.
inline Status register_planned(PlanBook& book, uint32_t local_rank, uint64_t set,
                               const PlanSet::Tensors& tensors) {
  const auto candidate = book.preparer()(set, tensors);
  BRAID_RETURN_IF_ERROR(book.check(local_rank, *candidate, 0, tensors.size()));
  BRAID_RETURN_IF_ERROR(book.add(local_rank, *candidate));
  book.index(*candidate, 0, tensors.size());
  return Status::ok();
}

// The hash of 't<i>'.
inline uint64_t hash_of(uint32_t i, const JobHash& job = test_job()) {
  return job.of_name("t" + std::to_string(i));
}

// Groups of 't<i>' by their numbers.
inline std::vector<std::vector<uint64_t>> groups_of(
    const std::vector<std::vector<uint32_t>>& numbers, const JobHash& job = test_job()) {
  std::vector<std::vector<uint64_t>> groups;
  for (const auto& group : numbers) {
    auto& hashes = groups.emplace_back();
    for (const uint32_t i : group) hashes.push_back(hash_of(i, job));
  }
  return groups;
}

// The names that a plan merges, group after group.
inline std::vector<std::vector<std::string>> names_of(const PlanSet::AgreedPlan& plan) {
  std::vector<std::vector<std::string>> names;
  for (const auto& group : plan.groups) {
    auto& list = names.emplace_back();
    for (const TensorGroup::Member& member : group->members) list.push_back(*member.name);
  }
  return names;
}

}  // namespace braid::testing
