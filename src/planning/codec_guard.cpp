// SPDX-License-Identifier: Apache-2.0
#include "planning/codec_guard.h"

#include <algorithm>
#include <cmath>

#include "base/log.h"
#include "base/printable.h"

namespace braid {

std::optional<PlainGroup> CodecGuard::add(NodeId from, const CodecSample& sample) {
  const uint64_t first = sample.tensors.front();
  if (plain_.contains({sample.set, first})) return std::nullopt;
  const auto join = joins_.try_emplace({sample.step, sample.set, first}).first;
  Join& own = join->second;
  if (own.nodes.empty()) {
    own.sum = sample;
  } else {
    // Nodes that disagree about the group are told by its operation.
    const bool is_same = own.sum.tensors == sample.tensors && own.sum.codec == sample.codec &&
                         own.sum.plan == sample.plan;
    if (!is_same || own.nodes.contains(from)) return std::nullopt;
    own.sum.loss.add(sample.loss);
  }
  own.nodes.insert(from);
  if (own.nodes.size() < nodes_) {
    if (joins_.size() > kJoinsMax) joins_.erase(joins_.begin());
    return std::nullopt;
  }
  const CodecSample all = std::move(own.sum);
  joins_.erase(join);
  const CodecLoss& loss = all.loss;
  GuardReading reading{all.set,         all.plan,      all.step,          all.tensors,    all.codec,
                       loss.residual(), loss.cosine(), loss.saturation(), loss.not_finite};
  BRAID_LOG_DEBUG(
      "job '{}': {} tensors from {:016x} on, step {}, {}: residual {:.4g}, cosine {:.4f}, "
      "saturation {:.4f}, {} elements not finite",
      job_name_, reading.tensors.size(), first, reading.step, to_string(reading.codec),
      reading.residual.value_or(NAN), reading.cosine.value_or(NAN), reading.saturation,
      reading.not_finite);
  auto plain = judge(reading);
  keep(std::move(reading));
  return plain;
}

// Gradients that are not finite say nothing of the codec: a reading of those does not count.
std::optional<PlainGroup> CodecGuard::judge(const GuardReading& reading) {
  if (reading.not_finite != 0) return std::nullopt;
  auto passed = passed_limit(reading);
  std::vector<uint64_t> due;
  for (const uint64_t tensor : reading.tensors) {
    const GroupKey key = {reading.set, tensor};
    if (!passed) {
      passed_.erase(key);
    } else if (passed_.size() < kTensorsMax || passed_.contains(key)) {
      if (++passed_[key] >= kReadingsInARow) due.push_back(tensor);
    }
  }
  if (due.empty()) return std::nullopt;
  passed->tensors = std::move(due);
  return passed;
}

std::optional<PlainGroup> CodecGuard::passed_limit(const GuardReading& reading) const {
  const GuardOptions& limits = options_;
  if (limits.residual_max > 0 && reading.residual && *reading.residual > limits.residual_max)
    return PlainGroup{{}, GuardLimit::Residual, *reading.residual, limits.residual_max};
  if (limits.cosine_min > 0 && reading.cosine && *reading.cosine < limits.cosine_min)
    return PlainGroup{{}, GuardLimit::Cosine, *reading.cosine, limits.cosine_min};
  // With steps in full training goes on whatever saturates between them.
  if (limits.saturation_max > 0 && reading.codec.full_every == 0 &&
      reading.saturation > limits.saturation_max)
    return PlainGroup{{}, GuardLimit::Saturation, reading.saturation, limits.saturation_max};
  return std::nullopt;
}

void CodecGuard::keep(GuardReading reading) {
  // A group that there is has been read again within one period, or one step later.
  std::erase_if(readings_, [&](const auto& entry) {
    const GuardReading& other = entry.second;
    return other.set == reading.set && other.step + options_.every_steps + 1 < reading.step;
  });
  const GroupKey key = {reading.set, reading.tensors.front()};
  if (readings_.size() < kReadingsMax || readings_.contains(key))
    readings_[key] = std::move(reading);
}

void CodecGuard::set_plain(uint64_t set, const std::vector<uint64_t>& tensors) {
  for (const uint64_t tensor : tensors) {
    plain_.insert({set, tensor});
    passed_.erase({set, tensor});
    readings_.erase({set, tensor});
  }
}

void CodecGuard::forget(uint64_t set) {
  const auto is_of_set = [set](const GroupKey& key) { return key.first == set; };
  std::erase_if(joins_, [set](const auto& join) { return std::get<1>(join.first) == set; });
  std::erase_if(readings_, [&](const auto& entry) { return is_of_set(entry.first); });
  std::erase_if(passed_, [&](const auto& entry) { return is_of_set(entry.first); });
  std::erase_if(plain_, is_of_set);
}

std::vector<GuardReading> CodecGuard::readings() const {
  std::vector<GuardReading> list;
  list.reserve(readings_.size());
  for (const auto& [key, reading] : readings_) list.push_back(reading);
  return list;
}

std::vector<GuardBoard::Entry> CodecGuard::worst() const {
  const std::string job = printable(job_name_);
  std::map<std::string, GuardBoard::Entry> worst;
  for (const auto& [key, reading] : readings_) {
    const std::string codec = to_string(reading.codec);
    const GuardBoard::Entry entry = {job, codec, reading.residual, reading.cosine,
                                     reading.saturation};
    take_worse(worst.try_emplace(codec, entry).first->second, entry);
  }
  std::vector<GuardBoard::Entry> list;
  list.reserve(worst.size());
  for (auto& [codec, entry] : worst) list.push_back(std::move(entry));
  return list;
}

}  // namespace braid
