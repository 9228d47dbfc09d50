// SPDX-License-Identifier: Apache-2.0
// What `braidctl plan --job` prints for people.
#include <algorithm>
#include <unordered_map>

#include "base/amount.h"
#include "braidctl/ctl_live.h"
#include "braidctl/status_view.h"
#include "braidctl/text_table.h"

namespace braid {
namespace {

constexpr size_t kNameCharacters = 40;

// Bytes that continue a character of UTF-8 do not begin one.
bool begins_character(char byte) { return (static_cast<unsigned char>(byte) & 0xc0) != 0x80; }

std::string name_for_people(const std::string& name) {
  return abbreviated(printable(name), kNameCharacters);
}

std::string iteration_line(const LiveSet& set) {
  const double predicted = set.predicted_iteration_seconds;
  const double measured = set.measured_iteration_seconds;
  std::string line = fmt::format("iteration: predicted {}, measured {}",
                                 predicted > 0 ? format_seconds(predicted) : "nothing",
                                 measured > 0 ? format_seconds(measured) : "nothing yet");
  if (predicted > 0 && measured > 0)
    line += fmt::format(" ({:.2f} times the prediction)", measured / predicted);
  return line + fmt::format("; steps measured: {}\n", set.steps_measured);
}

std::string beside_lines(const LiveSet& set) {
  std::string out;
  for (const LiveSet::Beside& one : set.beside) {
    out += fmt::format("beside the set of '{}', which began {} before, in {:.0f} % of the steps\n",
                       name_for_people(one.tensor), format_seconds(one.before_seconds),
                       one.share * 100);
  }
  return out;
}

std::string share_text(const std::optional<double>& value) {
  return value ? fmt::format("{:.3g}", *value) : "-";
}

bool has_codecs(const LiveSet& set) {
  return std::any_of(set.codecs.begin(), set.codecs.end(),
                     [](const LiveSet::Codec& codec) { return codec.name != "none"; });
}

// What a row of the groups says of its codec.
void append_codec(const LiveSet::Codec& codec, std::vector<std::string>& row) {
  for (const std::string& cell : {printable(codec.name), share_text(codec.residual),
                                  share_text(codec.cosine), share_text(codec.saturation)})
    row.push_back(cell);
}

std::string guard_lines(const LiveSet& set) {
  std::string out;
  for (const LiveSet::Plain& plain : set.plain) {
    const size_t count = plain.tensors.size();
    out += fmt::format("plain from step {} on: {} {} of {}, '{}' first: {} {:.4g}, limit {:.4g}\n",
                       plain.from_step, count, count == 1 ? "tensor" : "tensors",
                       printable(plain.codec), name_for_people(plain.tensors.front()),
                       printable(plain.limit), plain.measured, plain.allowed);
  }
  if (!has_codecs(set)) return out;
  if (set.sampled_every_steps == 0) return out + "what codecs lose is not measured\n";
  if (!set.is_coordinator) {
    return out + fmt::format("what codecs lose is known to node '{}', which coordinates the job\n",
                             printable(set.coordinator));
  }
  return out +
         fmt::format("what codecs lose is measured every {} steps\n", set.sampled_every_steps);
}

std::string groups_table(const LiveSet& set) {
  std::unordered_map<std::string_view, uint64_t> bytes_of;
  for (const Trace::Tensor& tensor : set.trace.tensors) bytes_of[tensor.name] = tensor.bytes();
  std::vector<std::vector<std::string>> rows = {{"GROUP", "TENSORS", "BYTES", "FROM", "TO"}};
  const bool is_coded = has_codecs(set);
  if (is_coded) {
    for (const char* heading : {"CODEC", "RESIDUAL", "COSINE", "SATURATION"})
      rows.front().emplace_back(heading);
  }
  for (const auto& names : set.groups) {
    uint64_t bytes = 0;
    for (const std::string& name : names) bytes += bytes_of[name];
    rows.push_back({std::to_string(rows.size()), std::to_string(names.size()), format_amount(bytes),
                    name_for_people(names.front()), name_for_people(names.back())});
    if (is_coded) append_codec(set.codecs[rows.size() - 2], rows.back());
  }
  return render_table(rows);
}

std::string set_table(const LiveSet& set) {
  uint64_t bytes = 0;
  for (const Trace::Tensor& tensor : set.trace.tensors) bytes += tensor.bytes();
  std::string out = fmt::format("plan {} by {} from step {} on: {} tensors, {}, in {} groups\n",
                                set.plan, printable(set.planner), set.from_step,
                                set.trace.tensors.size(), format_amount(bytes), set.groups.size());
  out += iteration_line(set) + beside_lines(set) + '\n';
  if (set.cost) out += live_cost_table(*set.cost) + '\n';
  const std::string guard = guard_lines(set);
  return out + groups_table(set) + (guard.empty() ? "" : "\n" + guard);
}

}  // namespace

std::string abbreviated(const std::string& name, size_t characters) {
  std::vector<size_t> begins;
  for (size_t i = 0; i < name.size(); ++i) {
    if (begins_character(name[i])) begins.push_back(i);
  }
  if (begins.size() <= characters) return name;
  constexpr std::string_view kLeftOut = "...";
  const size_t kept = characters - kLeftOut.size();
  const size_t tail = begins.size() - (kept + 1) / 2;
  return name.substr(0, begins[kept / 2]) + std::string(kLeftOut) + name.substr(begins[tail]);
}

std::string live_cost_table(const FittedCost& cost) {
  std::vector<std::vector<std::string>> rows = {
      {"BAND", "FROM", "TO", "STARTUP", "PER BYTE", "Gbit/s", "RESIDUAL"}};
  for (const FittedCost::Band& band : cost.bands()) {
    const double per_byte = band.cost.seconds_per_byte;
    rows.push_back({std::to_string(rows.size()), format_amount(band.bytes_min),
                    format_amount(band.bytes_max), format_seconds(band.cost.startup_seconds),
                    fmt::format("{:.3f} ns", per_byte * 1e9),
                    per_byte > 0 ? fmt::format("{:.3f}", 8e-9 / per_byte) : "-",
                    fmt::format("{:.1f} %", band.residual * 100)});
  }
  return render_table(rows);
}

std::string live_table(const LiveJob& job) {
  std::string out;
  for (size_t i = 0; i < job.sets.size(); ++i) {
    if (i > 0) out += '\n';
    out += "job " + printable(job.name);
    if (job.sets.size() > 1) out += fmt::format(", set {}", i + 1);
    out += '\n' + set_table(job.sets[i]);
  }
  return out;
}

}  // namespace braid
