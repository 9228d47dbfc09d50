// SPDX-License-Identifier: Apache-2.0
// What `braidctl plan --job` and `braidctl trace record` are told.
#include <algorithm>
#include <numeric>

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
Json trace_of(const PlanSet& set, const PlanMeter& meter) {
  const std::vector<uint64_t> ready_ns = meter.ready_ns(PlanBook::kReadyQuantile);
  std::vector<uint32_t> order = ready_order(ready_ns);
  // Traces have no empty tensors.
  std::erase_if(order, [&set](uint32_t i) { return set.tensors()[i].count == 0; });
  Json names = Json::array(), counts = Json::array(), dtypes = Json::array(), tb = Json::array();
  for (size_t i = order.size(); i-- > 0;) {
    const PlanSet::Tensor& tensor = set.tensors()[order[i]];
    names.push_back(*tensor.name);
    counts.push_back(tensor.count);
    dtypes.push_back(to_string(tensor.dtype));
    tb.push_back(seconds(ready_ns[order[i]] - (i == 0 ? 0 : ready_ns[order[i - 1]])));
  }
  return {{"names", std::move(names)},
          {"numel", std::move(counts)},
          {"tb", std::move(tb)},
          {"dtype", std::move(dtypes)},
          {"forward_seconds", seconds(meter.forward_ns())}};
}

// It comes from the coordinator: what is no JSON must not make the whole answer none.
Json cost_of(const std::string& text) {
  Json cost = text.empty() ? Json() : Json::parse(text, nullptr, /*allow_exceptions=*/false);
  return cost.is_discarded() ? Json() : cost;
}

Json number_or_null(const std::optional<double>& number) { return number ? Json(*number) : Json(); }

// Of a group whose codec holds; its reading is null as long as there is none.
Json codec_of(const TensorGroup& group, const PlanSet& set, const GuardNews& guard) {
  const CodecSpec& codec = set.current_codec(*set.index_of(group.members.front().tensor));
  Json one = {{"codec", to_string(codec)}, {"reading", Json()}};
  if (!guard.readings) return one;
  for (const GuardReading& reading : *guard.readings) {
    const bool is_of_group = reading.set == set.id() && reading.codec == codec &&
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

Json plain_of(uint64_t from_step, const PlainGroup& group, const PlanSet& set) {
  Json names = Json::array();
  for (const uint64_t hash : group.tensors)
    names.push_back(*set.tensors()[*set.index_of(hash)].name);
  const PlanSet::Tensor& first = set.tensors()[*set.index_of(group.tensors.front())];
  return {{"tensors", std::move(names)}, {"codec", to_string(first.codec)},
          {"from_step", from_step},      {"limit", to_string(group.limit)},
          {"measured", group.measured},  {"allowed", group.allowed}};
}

}  // namespace

std::string PlanBook::to_json(const Circumstances& circumstances, const GuardNews& guard) const {
  Json list = Json::array();
  for (const auto& [id, set] : sets_) {
    Json groups = Json::array(), codecs = Json::array(), plain = Json::array();
    for (const auto& [from_step, group] : set.plain)
      plain.push_back(plain_of(from_step, group, set.set));
    for (const auto& group : set.set.current().groups) {
      codecs.push_back(codec_of(*group, set.set, guard));
      Json names = Json::array();
      for (const TensorGroup::Member& member : group->members) names.push_back(*member.name);
      groups.push_back(std::move(names));
    }
    Json one = {{"plan", set.set.current().number},
                {"from_step", set.set.current().from_step},
                {"planner", set.planner},
                {"streams", circumstances.streams},
                {"nodes", nodes_},
                {"io_threads", circumstances.io_threads},
                {"carry_seconds_per_byte", carry_meter_.seconds_per_byte()},
                {"steps_measured", set.meter.steps()},
                {"steps_ignored", PlanMeter::kStepsIgnored},
                {"last_step", set.meter.last_step().value_or(0)},
                {"predicted_iteration_seconds", seconds(set.predicted_ns)},
                {"measured_iteration_seconds", seconds(set.meter.iteration_ns())},
                {"cost", cost_of(set.cost)},
                {"groups", std::move(groups)},
                {"codecs", std::move(codecs)},
                {"plain", std::move(plain)},
                {"guard",
                 {{"every_steps", guard.every_steps},
                  {"coordinator", guard.coordinator},
                  {"is_coordinator", guard.readings.has_value()}}},
                {"trace", trace_of(set.set, set.meter)}};
    list.push_back(std::move(one));
  }
  // Names come from trainers and may be no UTF-8.
  return Json({{"job", job_name_}, {"sets", std::move(list)}})
      .dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace braid
