// SPDX-License-Identifier: Apache-2.0
#include "job/told_work.h"

#include <algorithm>
#include <functional>
#include <initializer_list>
#include <string>

#include <fmt/format.h>

#include "base/printable.h"

namespace braid {
namespace {

// A trainer whose clock is further away is in a time namespace of its own.
constexpr uint64_t kSameClockNs = 1'000'000'000;

// False also of NaN.
bool are_seconds(std::initializer_list<double> numbers) {
  return std::ranges::all_of(
      numbers, [](double number) { return number >= 0 && number <= kWorkSecondsMax; });
}

Status wrong(const proto::WorkTold& told, const std::string& what) {
  return make_status(StatusCode::InvalidArgument, "told of the placed work '{}' {}",
                     printable(told.work()->string_view(), kWorkNameBytesMax), what);
}

Status check_items(const proto::WorkTold& told, uint32_t world_size) {
  if (told.work()->size() == 0 || told.work()->size() > kWorkNameBytesMax) {
    return make_status(StatusCode::InvalidArgument,
                       "told of placed work whose name has {} bytes; right are 1 to {}",
                       told.work()->size(), kWorkNameBytesMax);
  }
  if (told.items()->size() > kWorkItemsMax) {
    return wrong(told, fmt::format("{} items at once; {} are the most", told.items()->size(),
                                   kWorkItemsMax));
  }
  for (const proto::WorkItem* item : *told.items()) {
    if (item->name()->size() == 0 || item->name()->size() > kWorkItemNameBytesMax) {
      return wrong(told, fmt::format("an item whose name has {} bytes; right are 1 to {}",
                                     item->name()->size(), kWorkItemNameBytesMax));
    }
    if (item->owner() >= world_size && item->owner() != WorkSpans::kEverybody) {
      return wrong(told, fmt::format("an item of rank {}, where there are {} ranks", item->owner(),
                                     world_size));
    }
    if (!are_seconds({item->seconds(), item->least_seconds()})) {
      return wrong(told, fmt::format("an item that takes {} s, and at least {} s", item->seconds(),
                                     item->least_seconds()));
    }
  }
  return Status::ok();
}

Status check_spans(const proto::WorkTold& told) {
  if (told.spans() == nullptr) return Status::ok();
  if (told.spans()->size() > kWorkSpansMax) {
    return wrong(told, fmt::format("{} spans at once; {} are the most", told.spans()->size(),
                                   kWorkSpansMax));
  }
  for (const proto::WorkSpan* span : *told.spans()) {
    if (span->item() >= told.items()->size()) {
      return wrong(told, fmt::format("a span of item {}, where there are {}", span->item(),
                                     told.items()->size()));
    }
    if (span->begin_ns() > span->end_ns() || span->end_ns() > told.at_ns()) {
      return wrong(told, fmt::format("a span from {} to {} ns at {} ns", span->begin_ns(),
                                     span->end_ns(), told.at_ns()));
    }
  }
  return Status::ok();
}

Status check_load(const proto::WorkTold& told) {
  if (told.load() == nullptr) return Status::ok();
  const proto::WorkLoad& load = *told.load();
  if (are_seconds({load.interval_seconds(), load.seconds(), load.wait_seconds(),
                   load.input_wait_seconds(), load.planned_seconds(), load.makespan_seconds(),
                   load.bound_seconds()})) {
    return Status::ok();
  }
  return wrong(told, fmt::format("times that are no seconds from 0 to {}", kWorkSecondsMax));
}

WorkLoad load_of(const proto::WorkTold& told, uint32_t rank, uint64_t now_ns) {
  const proto::WorkLoad& from = *told.load();
  WorkLoad load;
  load.rank = rank;
  load.work = told.work()->str();
  load.told_ns = now_ns;
  load.updates = from.updates();
  load.interval_seconds = from.interval_seconds();
  load.seconds = from.seconds();
  load.wait_seconds = from.wait_seconds();
  load.input_wait_seconds = from.input_wait_seconds();
  load.planned_seconds = from.planned_seconds();
  load.makespan_seconds = from.makespan_seconds();
  load.bound_seconds = from.bound_seconds();
  for (const proto::WorkItem* item : *told.items()) {
    if (item->seconds() > 0)
      load.items.push_back({item->name()->str(), item->seconds(), item->least_seconds()});
  }
  std::ranges::stable_sort(load.items, std::ranges::greater(), &WorkLoad::Item::seconds);
  if (load.items.size() > PlacedWork::kItemsKept) {
    load.items_more = load.items.size() - PlacedWork::kItemsKept;
    load.items.resize(PlacedWork::kItemsKept);
  }
  return load;
}

// Checked ones.
WorkSpans spans_of(const proto::WorkTold& told, uint32_t rank, uint64_t now_ns) {
  WorkSpans spans;
  spans.rank = rank;
  spans.work = told.work()->str();
  if (told.spans() == nullptr) return spans;
  for (const proto::WorkItem* item : *told.items())
    spans.items.push_back({item->name()->str(), item->owner()});
  const bool is_same_clock = told.at_ns() <= now_ns && now_ns - told.at_ns() < kSameClockNs;
  const uint64_t at_ns = is_same_clock ? told.at_ns() : now_ns;
  const auto own_time = [&](uint64_t theirs_ns) {
    return at_ns - std::min(at_ns, told.at_ns() - theirs_ns);
  };
  for (const proto::WorkSpan* span : *told.spans()) {
    spans.spans.push_back(
        {own_time(span->begin_ns()), own_time(span->end_ns()), span->item(), span->is_wait()});
  }
  return spans;
}

}  // namespace

Result<ToldWork> read_told_work(const proto::WorkTold& told, uint32_t rank, uint32_t world_size,
                                uint64_t now_ns) {
  BRAID_RETURN_IF_ERROR(check_items(told, world_size));
  BRAID_RETURN_IF_ERROR(check_spans(told));
  BRAID_RETURN_IF_ERROR(check_load(told));
  ToldWork result;
  result.spans = spans_of(told, rank, now_ns);
  if (told.load() != nullptr) result.load = load_of(told, rank, now_ns);
  return result;
}

}  // namespace braid
