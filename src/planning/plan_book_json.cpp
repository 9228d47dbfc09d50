// SPDX-License-Identifier: Apache-2.0
// What `braidctl plan --job` and `braidctl trace record` are told.
#include <algorithm>
#include <numeric>
#include <unordered_map>

#include <nlohmann/json.hpp>

#include "planning/plan_book.h"

namespace braid {
namespace {

using Json = nlohmann::ordered_json;

double seconds(uint64_t nanoseconds) { return static_cast<double>(nanoseconds) / 1e9; }

// The tensors' places in the order in which they become ready.
std::vector<uint32_t> ready_order(const std::vector<uint64_t>& ready_ns) {
  std::vector<uint32_t> order(ready_ns.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(),
                   [&](uint32_t a, uint32_t b) { return ready_ns[a] < ready_ns[b]; });
  return order;
}

// In the form of plan/trace.h: the first layer first.
Json trace_of(const std::vector<PlanSet::Tensor>& tensors, const PlanMeter::Rows& rows,
              uint64_t forward_ns) {
  const std::vector<uint64_t> ready_ns = rows.ready_ns(PlannedSet::kReadyQuantile);
  std::vector<uint32_t> order = ready_order(ready_ns);
  // Traces have no empty tensors.
  std::erase_if(order, [&tensors](uint32_t i) { return tensors[i].count == 0; });
  Json names = Json::array(), counts = Json::array(), dtypes = Json::array(), tb = Json::array();
  for (size_t i = order.size(); i-- > 0;) {
    const PlanSet::Tensor& tensor = tensors[order[i]];
    names.push_back(*tensor.name);
    counts.push_back(tensor.count);
    dtypes.push_back(to_string(tensor.dtype));
    tb.push_back(seconds(ready_ns[order[i]] - (i == 0 ? 0 : ready_ns[order[i - 1]])));
  }
  return {{"names", std::move(names)},
          {"numel", std::move(counts)},
          {"tb", std::move(tb)},
          {"dtype", std::move(dtypes)},
          {"forward_seconds", seconds(forward_ns)}};
}

// It comes from the coordinator: what is no JSON must not make the whole answer none.
Json cost_of(const std::string& text) {
  Json cost = text.empty() ? Json() : Json::parse(text, nullptr, /*allow_exceptions=*/false);
  return cost.is_discarded() ? Json() : cost;
}

Json number_or_null(const std::optional<double>& number) { return number ? Json(*number) : Json(); }

// A set's tensors, for who has their hashes.
class ByHash {
 public:
  explicit ByHash(const std::vector<PlanSet::Tensor>& tensors) : tensors_(tensors) {
    for (uint32_t i = 0; i < tensors.size(); ++i) places_.emplace(tensors[i].hash, i);
  }
  uint32_t place_of(uint64_t hash) const { return places_.at(hash); }
  const PlanSet::Tensor& find(uint64_t hash) const { return tensors_[place_of(hash)]; }

 private:
  const std::vector<PlanSet::Tensor>& tensors_;
  std::unordered_map<uint64_t, uint32_t> places_;
};

// The codec of a group that has one; its reading is null as long as there is none.
Json codec_of(const TensorGroup& group, uint64_t set, const CodecSpec& codec,
              const GuardNews& guard) {
  Json one = {{"codec", to_string(codec)}, {"reading", Json()}};
  if (!guard.readings) return one;
  for (const GuardReading& reading : *guard.readings) {
    const bool is_of_group = reading.set == set && reading.codec == codec &&
                             reading.tensors.front() == group.members.front().tensor &&
                             reading.tensors.size() == group.members.size();
    if (!is_of_group) continue;
    one["reading"] = {{"step", reading.step},
                      {"residual", number_or_null(reading.residual)},
                      {"cosine", number_or_null(reading.cosine)},
                      {"saturation", reading.saturation},
                      {"not_finite", reading.not_finite}};
  }
  return one;
}

Json plain_of(uint64_t from_step, const PlainGroup& group, const ByHash& tensors) {
  Json names = Json::array();
  for (const uint64_t hash : group.tensors) names.push_back(*tensors.find(hash).name);
  const PlanSet::Tensor& first = tensors.find(group.tensors.front());
  return {{"tensors", std::move(names)}, {"codec", to_string(first.codec)},
          {"from_step", from_step},      {"limit", to_string(group.limit)},
          {"measured", group.measured},  {"allowed", group.allowed}};
}

// What is told of a set, apart from it.
struct ToldSet {
  explicit ToldSet(const PlannedSet& told);
  uint64_t id = 0;
  std::shared_ptr<const std::vector<PlanSet::Tensor>> tensors;
  PlanSet::AgreedPlan plan;
  std::vector<bool> is_plain;  // by tensor
  PlanMeter::Rows rows;
  uint64_t forward_ns = 0;
  uint64_t iteration_ns = 0;
  uint64_t steps = 0;
  uint64_t last_step = 0;
  PlannedSet::Origin origin;
  std::vector<std::pair<uint64_t, PlainGroup>> plain;
  // Sets that began a step between two of this one, each by its first tensor.
  struct Beside {
    std::shared_ptr<const std::string> tensor;
    double before_seconds = 0;
    double share = 0;
  };
  std::vector<Beside> beside;

  Json to_json(const Json& circumstances, const GuardNews& guard) const {
    static const CodecSpec kNone;
    const ByHash by_hash(*tensors);
    Json groups = Json::array(), codecs = Json::array(), plain_groups = Json::array();
    for (const auto& [from_step, group] : plain)
      plain_groups.push_back(plain_of(from_step, group, by_hash));
    for (const auto& group : plan.groups) {
      const uint32_t first = by_hash.place_of(group->members.front().tensor);
      codecs.push_back(
          codec_of(*group, id, is_plain[first] ? kNone : (*tensors)[first].codec, guard));
      Json names = Json::array();
      for (const TensorGroup::Member& member : group->members) names.push_back(*member.name);
      groups.push_back(std::move(names));
    }
    Json one = {{"plan", plan.number}, {"from_step", plan.from_step}, {"planner", origin.planner}};
    one.update(circumstances);
    one["steps_measured"] = steps;
    one["steps_ignored"] = PlanMeter::kStepsIgnored;
    one["last_step"] = last_step;
    one["predicted_iteration_seconds"] = seconds(origin.predicted_ns);
    one["measured_iteration_seconds"] = seconds(iteration_ns);
    one["cost"] = cost_of(origin.cost);
    one["groups"] = std::move(groups);
    one["codecs"] = std::move(codecs);
    one["plain"] = std::move(plain_groups);
    one["guard"] = {{"every_steps", guard.every_steps},
                    {"coordinator", guard.coordinator},
                    {"is_coordinator", guard.readings.has_value()}};
    one["beside"] = Json::array();
    for (const Beside& other : beside) {
      one["beside"].push_back({{"tensor", *other.tensor},
                               {"before_seconds", other.before_seconds},
                               {"share", other.share}});
    }
    one["trace"] = trace_of(*tensors, rows, forward_ns);
    return one;
  }
};

ToldSet::ToldSet(const PlannedSet& told)
    : id(told.set().id()),
      tensors(told.set().shared_tensors()),
      plan(told.set().current()),
      is_plain(told.set().current_plain()),
      rows(told.meter().kept_rows()),
      forward_ns(told.meter().forward_ns()),
      iteration_ns(told.meter().iteration_ns()),
      steps(told.meter().steps()),
      last_step(told.meter().last_step().value_or(0)),
      origin(told.origin()),
      plain(told.plain()) {}

}  // namespace

PlanBook::JsonMaker PlanBook::json_maker(const Circumstances& circumstances,
                                         const GuardNews& guard) const {
  std::vector<ToldSet> sets;
  for (const auto& [id, set] : sets_) {
    ToldSet& told = sets.emplace_back(set);
    for (const PlanReport::Beside& one : job_.rhythm.beside(id)) {
      const auto other = sets_.find(one.set);
      if (other == sets_.end()) continue;
      const PlanSet::Tensor& first = other->second.set().tensors().front();
      told.beside.push_back({first.name, seconds(one.before_ns), one.share});
    }
  }
  return [sets = std::move(sets), guard, job_name = job_.label.name,
          same = Json({{"streams", circumstances.streams},
                       {"nodes", job_.nodes},
                       {"io_threads", circumstances.io_threads},
                       {"carry_seconds_per_byte", job_.carry_meter.seconds_per_byte()}})] {
    Json list = Json::array();
    for (const ToldSet& set : sets) list.push_back(set.to_json(same, guard));
    // Names come from trainers and may be no UTF-8.
    return Json({{"job", job_name}, {"sets", std::move(list)}})
        .dump(-1, ' ', false, Json::error_handler_t::replace);
  };
}

}  // namespace braid
