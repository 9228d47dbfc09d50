// SPDX-License-Identifier: Apache-2.0
#include "planning/plan_set.h"

#include <algorithm>

#include "base/assert.h"
#include "base/hash.h"

namespace braid {

namespace {

std::vector<PlanSet::Tensor> in_order_of_backward(std::vector<PlanSet::Tensor> tensors) {
  std::stable_sort(tensors.begin(), tensors.end(),
                   [](const PlanSet::Tensor& a, const PlanSet::Tensor& b) {
                     return a.backward_order < b.backward_order;
                   });
  return tensors;
}

}  // namespace

bool PlanSet::Tensor::operator==(const Tensor& other) const {
  return hash == other.hash && *name == *other.name && dtype == other.dtype &&
         count == other.count && backward_order == other.backward_order;
}

PlanSet::PlanSet(const JobHash& job, uint64_t id, std::vector<Tensor> tensors)
    : job_(job), id_(id), tensors_(in_order_of_backward(std::move(tensors))) {
  BRAID_ASSERT(!tensors_.empty(), "a set has tensors");
  for (uint32_t i = 0; i < tensors_.size(); ++i) index_[tensors_[i].hash] = i;
  add(0, 0, first_groups());
}

std::vector<std::vector<uint64_t>> PlanSet::first_groups() const {
  std::vector<std::vector<uint64_t>> groups;
  uint64_t room = 0;
  for (size_t i = 0; i < tensors_.size(); ++i) {
    const uint64_t bytes = tensors_[i].bytes();
    if (i == 0 || bytes > room || tensors_[i].dtype != tensors_[i - 1].dtype) {
      room = groups.empty() ? kFirstGroupBytes : kGroupBytes;
      groups.emplace_back();
    }
    groups.back().push_back(tensors_[i].hash);
    room -= std::min(room, bytes);
  }
  return groups;
}

std::optional<uint32_t> PlanSet::index_of(uint64_t hash) const {
  const auto position = index_.find(hash);
  return position == index_.end() ? std::nullopt : std::optional(position->second);
}

bool PlanSet::is_of(std::vector<Tensor> tensors) const {
  return in_order_of_backward(std::move(tensors)) == tensors_;
}

const PlanSet::Version& PlanSet::version_of(uint64_t step) const {
  // Newest first: nearly always it is the one.
  for (auto version = plans_.rbegin(); version != plans_.rend(); ++version) {
    if (version->plan.from_step <= step) return *version;
  }
  return plans_.front();
}

Status PlanSet::check(std::span<const std::vector<uint64_t>> groups) const {
  std::vector<bool> seen(tensors_.size(), false);
  size_t tensors = 0;
  for (const std::vector<uint64_t>& group : groups) {
    if (group.empty()) return {StatusCode::Protocol, "a plan has a group without tensors"};
    std::optional<DataType> dtype;
    for (const uint64_t hash : group) {
      const auto index = index_of(hash);
      if (!index || seen[*index])
        return {StatusCode::Protocol, "a plan names a tensor twice or one that it is not for"};
      seen[*index] = true;
      ++tensors;
      if (dtype.value_or(tensors_[*index].dtype) != tensors_[*index].dtype)
        return {StatusCode::Protocol, "a plan merges tensors of different dtypes"};
      dtype = tensors_[*index].dtype;
    }
  }
  if (tensors != tensors_.size())
    return {StatusCode::Protocol, "a plan leaves out tensors that it is for"};
  return Status::ok();
}

void PlanSet::add(uint32_t number, uint64_t from_step,
                  std::span<const std::vector<uint64_t>> groups) {
  BRAID_ASSERT(plans_.empty() || from_step > plans_.back().plan.from_step,
               "plans follow each other");
  Version version;
  version.plan.number = number;
  version.plan.from_step = from_step;
  version.members.resize(tensors_.size());
  if (!plans_.empty()) version.plan.settings = plans_.back().plan.settings;
  for (const std::vector<uint64_t>& hashes : groups) {
    auto group = std::make_shared<TensorGroup>();
    for (const uint64_t hash : hashes) {
      const auto index = index_of(hash);
      BRAID_ASSERT(index.has_value(), "the groups were checked");
      const Tensor& tensor = tensors_[*index];
      const uint64_t offset = group->count * element_bytes(tensor.dtype);
      group->dtype = tensor.dtype;
      group->members.push_back({hash, tensor.name, tensor.count, offset});
      group->count += tensor.count;
      group->last_place = std::max(group->last_place, *index);
      if (hashes.size() == 1) continue;
      group->hash = job_.of(JobHash::Group, {group->hash, hash, tensor.count});
      version.members[*index] = {group, static_cast<uint32_t>(group->members.size() - 1)};
    }
    version.plan.groups.push_back(std::move(group));
  }
  append(std::move(version));
}

void PlanSet::add(uint32_t number, uint64_t from_step, const TransferSettings& settings,
                  bool reports_steps) {
  BRAID_ASSERT(from_step > plans_.back().plan.from_step, "plans follow each other");
  Version version = plans_.back();
  version.plan.number = number;
  version.plan.from_step = from_step;
  version.plan.settings = std::make_shared<const TransferSettings>(settings);
  version.plan.reports_steps = reports_steps;
  append(std::move(version));
}

void PlanSet::append(Version version) {
  plans_.push_back(std::move(version));
  if (plans_.size() > kPlansKept) plans_.pop_front();
}

uint64_t PlanSet::tensors_hash() const {
  uint64_t hash = fnv1a64("tensors");
  for (const Tensor& tensor : tensors_)
    hash = mix64(hash ^ mix64(tensor.count * kDataTypeCount + static_cast<uint64_t>(tensor.dtype)));
  return hash;
}

uint64_t PlanSet::bytes() const {
  uint64_t bytes = 0;
  for (const Tensor& tensor : tensors_) bytes += tensor.bytes();
  return bytes;
}

}  // namespace braid
