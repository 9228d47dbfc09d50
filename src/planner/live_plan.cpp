// SPDX-License-Identifier: Apache-2.0
#include "planner/live_plan.h"

#include <algorithm>
#include <unordered_map>

#include <nlohmann/json.hpp>

namespace braid {
namespace {

using nlohmann::json;

constexpr const char* kWho = "the daemon's answer";

Status wrong(std::string_view what) {
  return make_status(StatusCode::Protocol,
                     "{}: {}; are braidctl, braid-bench and braidd of one version?", kWho, what);
}

// An absent or ill-typed entry leaves what is there.
template <typename T>
void read_number(const json& object, const char* key, T& value) {
  const auto found = object.find(key);
  if (found != object.end() && found->is_number()) value = found->get<T>();
}

Result<std::vector<std::vector<std::string>>> read_groups(const json& set) {
  const auto found = set.find("groups");
  if (found == set.end() || !found->is_array()) return wrong("a set has no list of groups");
  std::vector<std::vector<std::string>> groups;
  for (const json& group : *found) {
    if (!group.is_array()) return wrong("a group is no list of names");
    auto& names = groups.emplace_back();
    for (const json& name : group) {
      if (!name.is_string()) return wrong("a group has a name that is no text");
      names.push_back(name.get<std::string>());
    }
  }
  return groups;
}

std::string read_text(const json& object, const char* key) {
  const auto found = object.find(key);
  return found != object.end() && found->is_string() ? found->get<std::string>() : std::string();
}

void read_optional(const json& object, const char* key, std::optional<double>& value) {
  const auto found = object.find(key);
  if (found != object.end() && found->is_number()) value = found->get<double>();
}

// Older daemons say nothing of codecs.
Status read_codecs(const json& set, LiveSet& live) {
  if (const auto guard = set.find("guard"); guard != set.end() && guard->is_object()) {
    read_number(*guard, "every_steps", live.sampled_every_steps);
    live.coordinator = read_text(*guard, "coordinator");
    const auto is_here = guard->find("is_coordinator");
    live.is_coordinator = is_here != guard->end() && *is_here == true;
  }
  const auto codecs = set.find("codecs");
  if (codecs == set.end()) return Status::ok();
  if (!codecs->is_array() || codecs->size() != live.groups.size())
    return wrong("a set's groups and codecs are not as many");
  for (const json& one : *codecs) {
    if (!one.is_object()) return wrong("a group has no codec");
    LiveSet::Codec& codec = live.codecs.emplace_back();
    codec.name = read_text(one, "codec");
    const auto reading = one.find("reading");
    codec.is_read = reading != one.end() && reading->is_object();
    if (!codec.is_read) continue;
    read_optional(*reading, "residual", codec.residual);
    read_optional(*reading, "cosine", codec.cosine);
    read_optional(*reading, "saturation", codec.saturation);
  }
  return Status::ok();
}

Status read_plain(const json& set, LiveSet& live) {
  const auto found = set.find("plain");
  if (found == set.end()) return Status::ok();
  for (const json& one : *found) {
    const auto tensors = one.is_object() ? one.find("tensors") : one.end();
    if (tensors == one.end() || !tensors->is_array() || tensors->empty())
      return wrong("what goes plain has no tensors");
    LiveSet::Plain& plain = live.plain.emplace_back();
    for (const json& name : *tensors) {
      if (!name.is_string()) return wrong("what goes plain has a name that is no text");
      plain.tensors.push_back(name.get<std::string>());
    }
    plain.codec = read_text(one, "codec");
    plain.limit = read_text(one, "limit");
    read_number(one, "from_step", plain.from_step);
    read_number(one, "measured", plain.measured);
    read_number(one, "allowed", plain.allowed);
  }
  return Status::ok();
}

// Older daemons say nothing of it.
Status read_beside(const json& set, LiveSet& live) {
  const auto found = set.find("beside");
  if (found == set.end()) return Status::ok();
  for (const json& one : *found) {
    if (!one.is_object()) return wrong("a set beside is no object");
    LiveSet::Beside& beside = live.beside.emplace_back();
    beside.tensor = read_text(one, "tensor");
    read_number(one, "before_seconds", beside.before_seconds);
    read_number(one, "share", beside.share);
  }
  return Status::ok();
}

Result<LiveSet> read_set(const json& set) {
  if (!set.is_object() || !set.contains("trace")) return wrong("a set has no trace");
  LiveSet live;
  read_number(set, "plan", live.plan);
  read_number(set, "from_step", live.from_step);
  read_number(set, "streams", live.streams);
  read_number(set, "nodes", live.nodes);
  read_number(set, "io_threads", live.io_threads);
  read_number(set, "carry_seconds_per_byte", live.carry_seconds_per_byte);
  read_number(set, "steps_measured", live.steps_measured);
  read_number(set, "steps_ignored", live.steps_ignored);
  read_number(set, "predicted_iteration_seconds", live.predicted_iteration_seconds);
  read_number(set, "measured_iteration_seconds", live.measured_iteration_seconds);
  const auto planner = set.find("planner");
  if (planner != set.end() && planner->is_string()) live.planner = planner->get<std::string>();
  auto groups = read_groups(set);
  if (!groups) return groups.status();
  live.groups = std::move(groups).value();
  BRAID_RETURN_IF_ERROR(read_codecs(set, live));
  BRAID_RETURN_IF_ERROR(read_plain(set, live));
  BRAID_RETURN_IF_ERROR(read_beside(set, live));
  auto trace = parse_trace(set["trace"].dump(), kWho);
  if (!trace) return trace.status();
  live.trace = std::move(trace).value();
  const auto cost = set.find("cost");
  if (cost != set.end() && cost->is_object()) {
    auto fitted = parse_cost(cost->dump(), kWho);
    if (!fitted) return fitted.status();
    live.cost = std::move(fitted).value();
  }
  return live;
}

}  // namespace

Result<std::vector<LiveJob>> parse_live_plans(std::string_view text) {
  const json document = json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!document.is_array()) return wrong("it is no list of jobs");
  std::vector<LiveJob> jobs;
  for (const json& entry : document) {
    const bool has_both = entry.is_object() && entry.contains("job") && entry["job"].is_string() &&
                          entry.contains("sets") && entry["sets"].is_array();
    if (!has_both) return wrong("a job has no name or no sets");
    LiveJob& job = jobs.emplace_back();
    job.name = entry["job"].get<std::string>();
    for (const json& one : entry["sets"]) {
      auto set = read_set(one);
      if (!set) return set.status().with_context(fmt::format("job '{}'", job.name));
      set->trace.model = job.name;
      job.sets.push_back(std::move(set).value());
    }
  }
  return jobs;
}

std::optional<LiveSet> largest_set(LiveJob job) {
  const auto bytes_of = [](const LiveSet& set) {
    uint64_t bytes = 0;
    for (const Trace::Tensor& tensor : set.trace.tensors) bytes += tensor.bytes();
    return bytes;
  };
  const auto largest = std::ranges::max_element(job.sets, {}, bytes_of);
  if (largest == job.sets.end()) return std::nullopt;
  return std::move(*largest);
}

Result<Plan> plan_of_groups(const std::vector<std::vector<std::string>>& groups,
                            const Trace& trace) {
  std::unordered_map<std::string_view, size_t> group_of;
  for (size_t i = 0; i < groups.size(); ++i) {
    for (const std::string& name : groups[i]) group_of[name] = i;
  }
  Plan plan;
  size_t last = SIZE_MAX;
  const auto count = static_cast<uint32_t>(trace.tensors.size());
  for (uint32_t i = 0; i < count; ++i) {
    const std::string& name = trace.tensors[count - 1 - i].name;
    const auto found = group_of.find(name);
    if (found == group_of.end())
      return make_status(StatusCode::Protocol, "'{}' is in none of the plan's groups", name);
    if (found->second != last) plan.groups.push_back({i, i, 1});
    plan.groups.back().end = i + 1;
    last = found->second;
  }
  return plan;
}

}  // namespace braid
