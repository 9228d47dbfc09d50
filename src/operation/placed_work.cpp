// SPDX-License-Identifier: Apache-2.0
#include "operation/placed_work.h"

#include <utility>

namespace braid {
namespace {

uint64_t bytes_of(const WorkSpans& spans) {
  uint64_t bytes = sizeof(spans) + spans.work.size() + spans.spans.size() * sizeof(spans.spans[0]);
  for (const WorkSpans::Item& item : spans.items) bytes += sizeof(item) + item.name.size();
  return bytes;
}

}  // namespace

Status PlacedWork::take(ToldWork told, UserCharge charge) {
  const MutexLock lock(mutex_);
  const auto [position, is_new] = ranks_.try_emplace(told.spans.rank);
  Rank& rank = position->second;
  if (is_new) rank.charge = std::move(charge);
  const bool is_known = rank.loads.contains(told.spans.work);
  if (!is_known && rank.loads.size() == kWorksMax) {
    return make_status(StatusCode::ResourceExhausted,
                       "told of the placed work '{}' beside {} others; {} are the most",
                       told.spans.work, rank.loads.size(), kWorksMax);
  }
  std::optional<WorkLoad>& load = rank.loads[told.spans.work];
  if (told.load) load = std::move(told.load);
  if (!told.spans.spans.empty()) keep(rank, std::move(told.spans));
  return Status::ok();
}

void PlacedWork::keep(Rank& rank, WorkSpans spans) {
  const uint64_t bytes = bytes_of(spans);
  while (!rank.spans.empty() && rank.bytes + bytes > kBytesMax) {
    rank.bytes -= bytes_of(*rank.spans.front());
    rank.spans.pop_front();
  }
  if (bytes > kBytesMax || !rank.charge.set(rank.bytes + bytes)) return;
  rank.bytes += bytes;
  rank.spans.push_back(std::make_shared<const WorkSpans>(std::move(spans)));
}

std::vector<WorkLoad> PlacedWork::loads() const {
  const MutexLock lock(mutex_);
  std::vector<WorkLoad> all;
  for (const auto& [number, rank] : ranks_) {
    for (const auto& [work, load] : rank.loads) {
      if (load) all.push_back(*load);
    }
  }
  return all;
}

std::vector<std::shared_ptr<const WorkSpans>> PlacedWork::spans() const {
  const MutexLock lock(mutex_);
  std::vector<std::shared_ptr<const WorkSpans>> all;
  for (const auto& [number, rank] : ranks_)
    all.insert(all.end(), rank.spans.begin(), rank.spans.end());
  return all;
}

}  // namespace braid
