// SPDX-License-Identifier: Apache-2.0
#include "bench/gradients.h"

#include <algorithm>
#include <cstring>

#include "advise/measure_codec.h"
#include "base/hash.h"

namespace braid::bench {
namespace {

constexpr uint64_t kAlignment = 64;
constexpr uint64_t kNormalElements = (1 << 20) + 7;

uint64_t aligned(uint64_t offset) { return (offset + kAlignment - 1) / kAlignment * kAlignment; }

}  // namespace

Result<Gradients> Gradients::create(const Trace& trace, uint32_t rank, uint32_t world_size) {
  Gradients gradients;
  for (auto tensor = trace.tensors.rbegin(); tensor != trace.tensors.rend(); ++tensor) {
    if (!gradients.patterns_.contains(tensor->dtype)) {
      auto pattern = Pattern::create(tensor->dtype, rank, world_size);
      if (!pattern) return pattern.status();
      gradients.patterns_.emplace(tensor->dtype, std::move(pattern).value());
    }
    gradients.add(*tensor);
  }
  return gradients;
}

Result<Gradients> Gradients::create_normal(const Trace& trace, uint32_t rank) {
  Gradients gradients;
  for (auto tensor = trace.tensors.rbegin(); tensor != trace.tensors.rend(); ++tensor) {
    if (tensor->dtype != DataType::Float32) {
      return make_status(StatusCode::InvalidArgument,
                         "'{}' is {}; codecs encode float32 alone: right is a trace of it",
                         tensor->name, to_string(tensor->dtype));
    }
    gradients.add(*tensor);
  }
  gradients.normal_ = make_gradient(kNormalElements);
  std::rotate(gradients.normal_.begin(), gradients.normal_.begin() + rank % kNormalElements,
              gradients.normal_.end());
  return gradients;
}

void Gradients::add(const Trace::Tensor& tensor) {
  const bool is_other = !tensors_.empty() && tensors_.back().dtype != tensor.dtype;
  if (is_other) bytes_ = aligned(bytes_);
  tensors_.push_back({tensor.name, tensor.dtype, tensor.count, bytes_});
  bytes_ += tensor.bytes();
}

void Gradients::fill_normal(uint64_t step, uint8_t* memory) const {
  for (size_t i = 0; i < tensors_.size(); ++i) {
    uint8_t* to = memory + tensors_[i].offset;
    uint64_t first = mix64(step + i) % kNormalElements;
    for (uint64_t left = tensors_[i].count; left != 0; first = 0) {
      const uint64_t here = std::min(left, kNormalElements - first);
      std::memcpy(to, &normal_[first], here * sizeof(float));
      to += here * sizeof(float);
      left -= here;
    }
  }
}

void Gradients::fill(uint64_t step, uint8_t* memory) const {
  if (!has_known_sums()) return fill_normal(step, memory);
  for (size_t i = 0; i < tensors_.size(); ++i) {
    const Tensor& tensor = tensors_[i];
    patterns_.at(tensor.dtype).fill(step + i, memory + tensor.offset, tensor.count);
  }
}

std::optional<Pattern::Mismatch> Gradients::verify(size_t i, uint64_t step, const void* sum) const {
  return patterns_.at(tensors_[i].dtype).verify(step + i, sum, tensors_[i].count);
}

Plan executable(const Plan& plan, const Gradients& gradients) {
  const auto& tensors = gradients.tensors();
  Plan parted;
  for (const Plan::Group& group : plan.groups) {
    for (uint32_t i = group.begin; i < group.end; ++i) {
      if (i == group.begin || tensors[i].dtype != tensors[i - 1].dtype)
        parted.groups.push_back({i, i, 1});
      parted.groups.back().end = i + 1;
    }
  }
  return parted;
}

std::vector<uint8_t> encode(const Plan& plan, size_t tensors) {
  std::vector<uint8_t> begins(tensors, 0);
  for (const Plan::Group& group : plan.groups) begins[group.begin] = 1;
  return begins;
}

Plan decode(const std::vector<uint8_t>& begins) {
  Plan plan;
  for (uint32_t i = 0; i < begins.size(); ++i) {
    if (i == 0 || begins[i] != 0) plan.groups.push_back({i, i, 1});
    plan.groups.back().end = i + 1;
  }
  return plan;
}

}  // namespace braid::bench
