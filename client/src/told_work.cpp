// SPDX-License-Identifier: Apache-2.0
#include "told_work.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include <braid_place.h>

#include "options.h"

namespace braid::client {

template <>
inline constexpr size_t kFirstBytes<braid_work_item> = sizeof(braid_work_item);
template <>
inline constexpr size_t kFirstBytes<braid_work_span> = sizeof(braid_work_span);
template <>
inline constexpr size_t kFirstBytes<braid_work> = sizeof(braid_work);

namespace {

// As the daemon has them.
constexpr size_t kWorkBytesMax = 64;
constexpr size_t kToldItemsMax = 1024;
constexpr size_t kItemBytesMax = 255;
constexpr size_t kToldSpansMax = 4096;
constexpr double kToldSecondsMax = 1e6;

Status check_name(const char* name, const char* field, size_t bytes_max) {
  if (name == nullptr) return make_status(StatusCode::InvalidArgument, "{} is NULL", field);
  const size_t bytes = ::strnlen(name, bytes_max + 1);
  if (bytes > 0 && bytes <= bytes_max) return {};
  return make_status(StatusCode::InvalidArgument, "{} has {} bytes; right are 1 to {}", field,
                     std::strlen(name), bytes_max);
}

// Refuses NaN, too.
Status check_seconds(double seconds, const char* field) {
  if (seconds >= 0 && seconds <= kToldSecondsMax) return {};
  return make_status(StatusCode::InvalidArgument, "{} is {}; right are 0 to {}", field, seconds,
                     kToldSecondsMax);
}

// One struct of an array whose stride is the caller's size of it.
template <typename Struct>
Status read_one(const Struct* array, size_t index, const char* type, Struct& one) {
  const char* bytes = reinterpret_cast<const char*>(array);
  BRAID_RETURN_IF_ERROR(read_options(bytes + index * array->struct_size, type, one));
  if (one.struct_size == array->struct_size) return {};
  return make_status(StatusCode::InvalidArgument, "struct_size differs within the array of {}",
                     type);
}

Status check_array(const void* array, size_t count, size_t most, const char* field) {
  if (count <= most && (array != nullptr || count == 0)) return {};
  return make_status(StatusCode::InvalidArgument, "{} {} {}; {} are the most", field,
                     array == nullptr ? "is NULL and has" : "has", count, most);
}

Status read_told_items(const braid_work& work, uint32_t world_size,
                       flatbuffers::FlatBufferBuilder& builder,
                       std::vector<flatbuffers::Offset<proto::WorkItem>>& items) {
  BRAID_RETURN_IF_ERROR(check_array(work.items, work.item_count, kToldItemsMax, "items"));
  for (size_t i = 0; i < work.item_count; ++i) {
    braid_work_item item{};
    BRAID_RETURN_IF_ERROR(read_one(work.items, i, "braid_work_item", item));
    BRAID_RETURN_IF_ERROR(check_name(item.name, "an item's name", kItemBytesMax));
    BRAID_RETURN_IF_ERROR(check_seconds(item.seconds, "an item's seconds"));
    BRAID_RETURN_IF_ERROR(check_seconds(item.least_seconds, "an item's least_seconds"));
    if (item.owner >= world_size && item.owner != BRAID_EVERYBODY) {
      return make_status(StatusCode::InvalidArgument,
                         "item {} '{}' has the owner {}, and there are {} ranks", i, item.name,
                         item.owner, world_size);
    }
    items.push_back(proto::CreateWorkItem(builder, builder.CreateString(item.name), item.owner,
                                          item.seconds, item.least_seconds));
  }
  return {};
}

Status read_told_spans(const braid_work& work, uint64_t now_ns,
                       std::vector<proto::WorkSpan>& spans) {
  BRAID_RETURN_IF_ERROR(check_array(work.spans, work.span_count, kToldSpansMax, "spans"));
  for (size_t i = 0; i < work.span_count; ++i) {
    braid_work_span span{};
    BRAID_RETURN_IF_ERROR(read_one(work.spans, i, "braid_work_span", span));
    if (span.item >= work.item_count) {
      return make_status(StatusCode::InvalidArgument, "span {} is of item {}, and there are {}", i,
                         span.item, work.item_count);
    }
    if (span.begin_ns > span.end_ns || span.end_ns > now_ns) {
      return make_status(StatusCode::InvalidArgument,
                         "span {} is from {} to {} ns of CLOCK_MONOTONIC, and now it is {} ns", i,
                         span.begin_ns, span.end_ns, now_ns);
    }
    spans.emplace_back(span.begin_ns, span.end_ns, span.item, span.is_wait != 0);
  }
  return {};
}

Status check_load(const braid_work& work) {
  BRAID_RETURN_IF_ERROR(check_seconds(work.interval_seconds, "interval_seconds"));
  BRAID_RETURN_IF_ERROR(check_seconds(work.seconds, "seconds"));
  BRAID_RETURN_IF_ERROR(check_seconds(work.wait_seconds, "wait_seconds"));
  BRAID_RETURN_IF_ERROR(check_seconds(work.input_wait_seconds, "input_wait_seconds"));
  BRAID_RETURN_IF_ERROR(check_seconds(work.planned_seconds, "planned_seconds"));
  BRAID_RETURN_IF_ERROR(check_seconds(work.makespan_seconds, "makespan_seconds"));
  return check_seconds(work.bound_seconds, "bound_seconds");
}

}  // namespace

Status write_told_work(const braid_work* given, uint32_t world_size, uint64_t now_ns,
                       flatbuffers::FlatBufferBuilder& builder,
                       flatbuffers::Offset<proto::WorkTold>& told) {
  braid_work work{};
  BRAID_RETURN_IF_ERROR(read_options(given, "braid_work", work));
  BRAID_RETURN_IF_ERROR(check_name(work.name, "name", kWorkBytesMax));
  std::vector<flatbuffers::Offset<proto::WorkItem>> items;
  std::vector<proto::WorkSpan> spans;
  BRAID_RETURN_IF_ERROR(read_told_items(work, world_size, builder, items));
  BRAID_RETURN_IF_ERROR(read_told_spans(work, now_ns, spans));
  flatbuffers::Offset<proto::WorkLoad> load;
  if (work.updates != 0) {
    BRAID_RETURN_IF_ERROR(check_load(work));
    load = proto::CreateWorkLoad(builder, work.updates, work.interval_seconds, work.seconds,
                                 work.wait_seconds, work.input_wait_seconds, work.planned_seconds,
                                 work.makespan_seconds, work.bound_seconds);
  }
  told = proto::CreateWorkTold(builder, builder.CreateString(work.name), now_ns,
                               builder.CreateVector(items), builder.CreateVectorOfStructs(spans),
                               load);
  return {};
}

}  // namespace braid::client
