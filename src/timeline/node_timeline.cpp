// SPDX-License-Identifier: Apache-2.0
#include "timeline/node_timeline.h"

#include <algorithm>
#include <iterator>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "timeline/timeline_rows.h"

namespace braid {
namespace {

constexpr size_t kNameBytesMin = 8;
// Room for one of the node's own names, and what else stands around the lists.
constexpr size_t kFrameBytes = 1024;

// Names come from trainers: no byte of what is returned becomes several in JSON.
std::string plain_name(const std::string& name) {
  std::string plain = name;
  for (char& c : plain) {
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f || c == '"' || c == '\\') c = '?';
  }
  try {
    (void)nlohmann::json(plain).dump();
  } catch (const nlohmann::json::exception&) {  // it is no UTF-8
    for (char& c : plain) {
      if (static_cast<unsigned char>(c) >= 0x80) c = '?';
    }
  }
  return plain;
}

// Its end, where names of layers differ most; from the beginning of a character.
std::string shortened(const std::string& name, size_t bytes_max) {
  if (name.size() <= bytes_max) return name;
  size_t from = name.size() - bytes_max;
  while (from < name.size() && (static_cast<unsigned char>(name[from]) & 0xC0) == 0x80) ++from;
  return name.substr(from);
}

size_t digits(int64_t value) {
  size_t count = value < 0 ? 2 : 1;
  for (uint64_t rest = value < 0 ? -static_cast<uint64_t>(value) : static_cast<uint64_t>(value);
       rest >= 10; rest /= 10)
    ++count;
  return count;
}

// With the brackets and commas.
template <size_t N>
size_t row_bytes(const std::array<int64_t, N>& row) {
  size_t bytes = N + 2;
  for (const int64_t value : row) bytes += digits(value);
  return bytes;
}

// Takes what the newest spans need off `bytes_left`; the others go. Returns how many.
template <typename Span>
size_t keep_newest(std::vector<Span>& spans, size_t& bytes_left) {
  size_t first = spans.size();
  while (first > 0) {
    const size_t bytes = row_bytes(row_of(spans[first - 1]));
    if (bytes > bytes_left) break;
    bytes_left -= bytes;
    --first;
  }
  // What is older than a span that had no room has none either.
  if (first > 0) bytes_left = 0;
  spans.erase(spans.begin(), spans.begin() + static_cast<ptrdiff_t>(first));
  return first;
}

size_t bytes_of(const std::vector<std::string>& names) {
  size_t bytes = 0;
  for (const std::string& name : names) bytes += name.size() + 3;
  return bytes;
}

void shorten_all(std::vector<std::string>& names, size_t bytes_max) {
  for (std::string& name : names) name = plain_name(name);
  if (bytes_of(names) <= bytes_max) return;
  const size_t each = bytes_max / names.size();
  for (std::string& name : names)
    name = shortened(name, std::max(each < 3 ? 0 : each - 3, kNameBytesMin));
}

template <typename Span>
void append_rows(fmt::memory_buffer& out, std::string_view name, const std::vector<Span>& spans) {
  fmt::format_to(std::back_inserter(out), ",\n\"{}\":[", name);
  bool is_first = true;
  for (const Span& span : spans) {
    fmt::format_to(std::back_inserter(out), "{}[{}]", is_first ? "" : ",",
                   fmt::join(row_of(span), ","));
    is_first = false;
  }
  out.push_back(']');
}

std::string to_text(const nlohmann::json& json) {
  return json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

template <typename Span>
Status parse_rows(const nlohmann::json& json, const char* name, std::vector<Span>& spans) {
  if (!json.contains(name)) return Status::ok();
  using Row = decltype(row_of(Span()));
  for (const nlohmann::json& columns : json.at(name)) {
    Span span;
    if (columns.size() != std::tuple_size_v<Row> || !take_row(columns.get<Row>(), span)) {
      return make_status(StatusCode::Protocol, "a timeline: row {} of {} is not one of its spans",
                         spans.size(), name);
    }
    spans.push_back(span);
  }
  return Status::ok();
}

template <typename Span>
bool are_named(const std::vector<Span>& spans, const NodeTimeline& timeline) {
  return std::ranges::all_of(
      spans, [&](const Span& span) { return span.tensor < timeline.tensors.size(); });
}

Status check_names(const NodeTimeline& timeline) {
  const bool chunks_are_named = std::ranges::all_of(timeline.chunks, [&](const auto& chunk) {
    return chunk.peer < timeline.peers.size() && chunk.rail < timeline.rails.size();
  });
  const bool work_is_named = std::ranges::all_of(timeline.work, [&](const auto& span) {
    return span.work < timeline.names.size() && span.item < timeline.names.size();
  });
  if (chunks_are_named && are_named(timeline.submits, timeline) &&
      are_named(timeline.operations, timeline) && are_named(timeline.unfinished, timeline) &&
      are_named(timeline.units, timeline) && are_named(timeline.reduces, timeline) &&
      are_named(timeline.chunks, timeline) && work_is_named) {
    return Status::ok();
  }
  return make_status(
      StatusCode::Protocol,
      "the timeline of node '{}' has spans whose tensor, peer, rail or work has no name",
      timeline.node);
}

Result<NodeTimeline> parse_one(const nlohmann::json& json) {
  NodeTimeline timeline;
  if (const uint32_t format = json.value("format", 0U); format != NodeTimeline::kFormat) {
    return make_status(StatusCode::Protocol, "a timeline has format {}, and this program reads {}",
                       format, NodeTimeline::kFormat);
  }
  timeline.node = json.value("node", std::string());
  timeline.version = json.value("version", std::string());
  timeline.job = json.value("job", std::string());
  timeline.epoch = json.value("epoch", 0U);
  timeline.world_size = json.value("world_size", 0U);
  timeline.ranks = json.value("ranks", std::vector<uint32_t>());
  timeline.origin_ns = json.value("origin_ns", uint64_t{0});
  timeline.told = json.value("told", uint64_t{0});
  timeline.overwritten = json.value("overwritten", uint64_t{0});
  timeline.dropped = json.value("dropped", uint64_t{0});
  timeline.tensors = json.value("tensors", std::vector<std::string>());
  timeline.peers = json.value("peers", std::vector<std::string>());
  timeline.rails = json.value("rails", std::vector<std::string>());
  timeline.names = json.value("names", std::vector<std::string>());
  BRAID_RETURN_IF_ERROR(parse_rows(json, "submits", timeline.submits));
  BRAID_RETURN_IF_ERROR(parse_rows(json, "operations", timeline.operations));
  BRAID_RETURN_IF_ERROR(parse_rows(json, "unfinished", timeline.unfinished));
  BRAID_RETURN_IF_ERROR(parse_rows(json, "units", timeline.units));
  BRAID_RETURN_IF_ERROR(parse_rows(json, "reduces", timeline.reduces));
  BRAID_RETURN_IF_ERROR(parse_rows(json, "chunks", timeline.chunks));
  BRAID_RETURN_IF_ERROR(parse_rows(json, "work", timeline.work));
  BRAID_RETURN_IF_ERROR(check_names(timeline));
  return timeline;
}

Result<JobTimeline> parse_job(const nlohmann::json& json) {
  JobTimeline job;
  job.job = json.at("job").get<std::string>();
  job.first_step = json.value("first_step", uint64_t{0});
  job.missing = json.value("missing", std::vector<std::string>());
  for (const nlohmann::json& told : json.at("nodes")) {
    auto timeline = parse_one(told.at("timeline"));
    if (!timeline) return timeline.status();
    job.nodes.push_back({told.value("offset_ns", int64_t{0}), told.value("error_ns", uint64_t{0}),
                         std::move(*timeline)});
  }
  return job;
}

Result<std::vector<JobTimeline>> parse_jobs(const nlohmann::json& json) {
  std::vector<JobTimeline> jobs;
  for (const nlohmann::json& told : json) {
    auto job = parse_job(told);
    if (!job) return job.status();
    jobs.push_back(std::move(*job));
  }
  return jobs;
}

// nlohmann's exceptions stay in this room.
template <typename Value>
Result<Value> parse(std::string_view text, Result<Value> (*read)(const nlohmann::json&)) {
  try {
    return read(nlohmann::json::parse(text));
  } catch (const nlohmann::json::exception& error) {
    return make_status(StatusCode::Protocol, "this is no timeline: {}", error.what());
  }
}

}  // namespace

void drop_to_fit(NodeTimeline& timeline, size_t bytes_max) {
  shorten_all(timeline.tensors, bytes_max / 8 * 3);
  shorten_all(timeline.names, bytes_max / 8);
  shorten_all(timeline.peers, bytes_max / 8);
  shorten_all(timeline.rails, bytes_max / 8);
  const size_t taken = kFrameBytes + timeline.job.size() + timeline.node.size() +
                       timeline.ranks.size() * 11 + bytes_of(timeline.tensors) +
                       bytes_of(timeline.peers) + bytes_of(timeline.rails) +
                       bytes_of(timeline.names);
  size_t bytes_left = bytes_max > taken ? bytes_max - taken : 0;
  timeline.dropped += keep_newest(timeline.unfinished, bytes_left);
  timeline.dropped += keep_newest(timeline.operations, bytes_left);
  timeline.dropped += keep_newest(timeline.submits, bytes_left);
  timeline.dropped += keep_newest(timeline.work, bytes_left);
  timeline.dropped += keep_newest(timeline.units, bytes_left);
  timeline.dropped += keep_newest(timeline.reduces, bytes_left);
  timeline.dropped += keep_newest(timeline.chunks, bytes_left);
}

std::string to_json(const NodeTimeline& timeline) {
  fmt::memory_buffer out;
  fmt::format_to(
      std::back_inserter(out),
      R"({{"format":{},"node":{},"version":{},"job":{},"epoch":{},"world_size":{},"ranks":[{}],)"
      R"("origin_ns":{},"told":{},"overwritten":{},"dropped":{},"tensors":{},"peers":{},"rails":{},"names":{})",
      NodeTimeline::kFormat, to_text(timeline.node), to_text(timeline.version),
      to_text(timeline.job), timeline.epoch, timeline.world_size, fmt::join(timeline.ranks, ","),
      timeline.origin_ns, timeline.told, timeline.overwritten, timeline.dropped,
      to_text(timeline.tensors), to_text(timeline.peers), to_text(timeline.rails),
      to_text(timeline.names));
  append_rows(out, "submits", timeline.submits);
  append_rows(out, "operations", timeline.operations);
  append_rows(out, "unfinished", timeline.unfinished);
  append_rows(out, "units", timeline.units);
  append_rows(out, "reduces", timeline.reduces);
  append_rows(out, "chunks", timeline.chunks);
  append_rows(out, "work", timeline.work);
  out.push_back('}');
  return fmt::to_string(out);
}

Result<NodeTimeline> parse_node_timeline(std::string_view json) { return parse(json, parse_one); }

Result<std::vector<JobTimeline>> parse_job_timelines(std::string_view json) {
  return parse(json, parse_jobs);
}

}  // namespace braid
