// SPDX-License-Identifier: Apache-2.0
#include "planning/guard_board.h"

#include <algorithm>
#include <utility>

namespace braid {
namespace {

std::optional<double> worse_of(std::optional<double> a, std::optional<double> b, bool is_low_bad) {
  if (!a || !b) return a ? a : b;
  return is_low_bad ? std::min(*a, *b) : std::max(*a, *b);
}

}  // namespace

void take_worse(GuardBoard::Entry& entry, const GuardBoard::Entry& other) {
  entry.residual = worse_of(entry.residual, other.residual, false);
  entry.cosine = worse_of(entry.cosine, other.cosine, true);
  entry.saturation = std::max(entry.saturation, other.saturation);
}

void GuardBoard::set(uint64_t job_key, std::vector<Entry> entries) {
  const std::lock_guard lock(mutex_);
  if (entries.empty()) {
    jobs_.erase(job_key);
  } else {
    jobs_[job_key] = std::move(entries);
  }
}

std::vector<GuardBoard::Entry> GuardBoard::entries() const {
  std::map<std::pair<std::string, std::string>, Entry> merged;
  const std::lock_guard lock(mutex_);
  for (const auto& [key, entries] : jobs_) {
    for (const Entry& entry : entries)
      take_worse(merged.try_emplace({entry.job, entry.codec}, entry).first->second, entry);
  }
  std::vector<Entry> list;
  list.reserve(merged.size());
  for (auto& [name, entry] : merged) list.push_back(std::move(entry));
  return list;
}

}  // namespace braid
