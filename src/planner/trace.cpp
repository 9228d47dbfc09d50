// SPDX-License-Identifier: Apache-2.0
#include "planner/trace.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <limits>
#include <unordered_map>

#include "base/checked.h"
#include "base/read_file.h"
#include "planner/json_input.h"

namespace braid {
namespace {

using nlohmann::json;

// 200,000 tensors with some hundred samples.
constexpr size_t kTraceBytesMax = size_t{512} << 20;
constexpr uint64_t kGradientBytesMax = std::numeric_limits<int64_t>::max();

constexpr const char* kRightSeconds = "a time in seconds, such as 0.0015";
constexpr const char* kRightCount = "the number of elements, an integer from 1";
constexpr const char* kRightType =
    "float32, float64, float16, bfloat16, int32, int64 or uint8, one for all or one per tensor";

// Reads one document; every function of it returns the first thing that is wrong.
class TraceReader {
 public:
  TraceReader(const json& document, std::string_view file) : document_(document), file_(file) {}

  Result<Trace> read() {
    // The last three are in published traces and say nothing that planning needs.
    BRAID_RETURN_IF_ERROR(check_keys(document_, file_, "",
                                     {"model", "names", "numel", "tb", "dtype", "forward_seconds",
                                      "samples", "comm_measured", "nworkers", "note"}));
    BRAID_RETURN_IF_ERROR(check_lengths());
    BRAID_RETURN_IF_ERROR(read_names());
    BRAID_RETURN_IF_ERROR(read_counts());
    BRAID_RETURN_IF_ERROR(read_types());
    BRAID_RETURN_IF_ERROR(check_bytes());
    BRAID_RETURN_IF_ERROR(read_times());
    BRAID_RETURN_IF_ERROR(read_model_and_forward());
    BRAID_RETURN_IF_ERROR(read_samples());
    return std::move(trace_);
  }

 private:
  JsonEntry entry(const char* key) const { return {document_[key], file_, key}; }
  JsonEntry entry(const char* key, size_t i) const {
    return {document_[key][i], file_, fmt::format("{}[{}]", key, i)};
  }

  Status check_lengths() {
    const std::array<std::pair<const char*, const char*>, 3> lists = {
        {{"names", "a list of the tensors' names, first layer first"},
         {"numel", "a list of the tensors' numbers of elements, first layer first"},
         {"tb", "a list of the seconds in which backward makes each gradient, first layer first"}}};
    for (const auto& [key, right] : lists) {
      if (!document_.contains(key)) {
        return make_status(StatusCode::InvalidArgument, "{}: {} is missing; right is {}", file_,
                           key, right);
      }
      const json& list = document_[key];
      if (!list.is_array()) return entry(key).error("is no list", right);
      if (list.empty()) return entry(key).error("is empty", "one entry per tensor");
      if (list.size() > Trace::kTensorsMax) {
        return entry(key).error("is too long",
                                fmt::format("{} tensors at most", Trace::kTensorsMax));
      }
      if (list.size() != document_["names"].size()) {
        return entry(key).error("does not fit", fmt::format("one entry for each of the {} names",
                                                            document_["names"].size()));
      }
    }
    trace_.tensors.resize(document_["names"].size());
    return Status::ok();
  }

  Status read_names() {
    std::unordered_map<std::string, size_t> places;
    for (size_t i = 0; i < trace_.tensors.size(); ++i) {
      const JsonEntry name = entry("names", i);
      const auto text = name.text("the tensor's name");
      if (!text) return text.status();
      if (const auto [place, is_new] = places.try_emplace(*text, i); !is_new) {
        return name.error(fmt::format("stands at names[{}] too", place->second),
                          "a name that no other tensor has");
      }
      trace_.tensors[i].name = *text;
    }
    return Status::ok();
  }

  Status read_counts() {
    for (size_t i = 0; i < trace_.tensors.size(); ++i) {
      const auto count = entry("numel", i).integer(1, kGradientBytesMax, kRightCount);
      if (!count) return count.status();
      trace_.tensors[i].count = *count;
    }
    return Status::ok();
  }

  static Result<DataType> read_type(const JsonEntry& entry) {
    const auto text = entry.text(kRightType);
    if (!text) return text.status();
    for (uint8_t i = 0; i < kDataTypeCount; ++i) {
      if (*text == to_string(static_cast<DataType>(i))) return static_cast<DataType>(i);
    }
    return entry.error("is no type of gradients", kRightType);
  }

  Status read_types() {
    if (!document_.contains("dtype")) return Status::ok();
    const bool is_list = document_["dtype"].is_array();
    if (is_list && document_["dtype"].size() != trace_.tensors.size()) {
      return entry("dtype").error("does not fit", kRightType);
    }
    for (size_t i = 0; i < trace_.tensors.size(); ++i) {
      const auto type = read_type(is_list ? entry("dtype", i) : entry("dtype"));
      if (!type) return type.status();
      trace_.tensors[i].dtype = *type;
    }
    return Status::ok();
  }

  Status check_bytes() const {
    CheckedNumber sum = 0;
    for (size_t i = 0; i < trace_.tensors.size(); ++i) {
      const Trace::Tensor& tensor = trace_.tensors[i];
      sum += CheckedNumber(tensor.count) * element_bytes(tensor.dtype);
      if (!sum.is_at_most(kGradientBytesMax)) {
        return entry("numel", i).error("is too large", "gradients of less than 2^63 bytes in sum");
      }
    }
    return Status::ok();
  }

  Status read_times() {
    for (size_t i = 0; i < trace_.tensors.size(); ++i) {
      const auto seconds = entry("tb", i).non_negative(kRightSeconds);
      if (!seconds) return seconds.status();
      trace_.tensors[i].backward_seconds = *seconds;
    }
    // Finite one by one, they may still not be in sum.
    if (std::isfinite(trace_.backward_seconds())) return Status::ok();
    return entry("tb").error("has an infinite sum", "times in seconds");
  }

  Status read_model_and_forward() {
    if (document_.contains("model")) {
      const auto model = entry("model").text("the model's name, or no such entry");
      if (!model) return model.status();
      trace_.model = *model;
    }
    trace_.forward_seconds = trace_.backward_seconds() / 2;
    if (!document_.contains("forward_seconds")) return Status::ok();
    const auto seconds = entry("forward_seconds").non_negative(kRightSeconds);
    if (!seconds) return seconds.status();
    trace_.forward_seconds = *seconds;
    return Status::ok();
  }

  Status read_samples() {
    if (!document_.contains("samples")) return Status::ok();
    constexpr const char* kRight = R"(a list of {"rank", "step", "forward_seconds", "tb"})";
    const json& list = document_["samples"];
    if (!list.is_array()) return entry("samples").error("is no list", kRight);
    trace_.samples.resize(list.size());
    for (size_t i = 0; i < list.size(); ++i) {
      const JsonEntry sample = entry("samples", i);
      if (!sample.value.is_object()) return sample.error("is no object", kRight);
      BRAID_RETURN_IF_ERROR(read_sample(sample, trace_.samples[i]));
    }
    return Status::ok();
  }

  Status read_sample(const JsonEntry& sample, Trace::Sample& out) const {
    BRAID_RETURN_IF_ERROR(check_keys(sample.value, file_, sample.where + ".",
                                     {"rank", "step", "forward_seconds", "tb"}));
    for (const char* key : {"rank", "step", "forward_seconds", "tb"}) {
      if (!sample.value.contains(key)) {
        return make_status(StatusCode::InvalidArgument, "{}: {}.{} is missing", file_, sample.where,
                           key);
      }
    }
    const auto field = [&](const char* key) {
      return JsonEntry{sample.value[key], file_, fmt::format("{}.{}", sample.where, key)};
    };
    const auto rank = field("rank").integer(0, std::numeric_limits<uint32_t>::max(), "a rank");
    if (!rank) return rank.status();
    const auto step =
        field("step").integer(0, std::numeric_limits<uint64_t>::max(), "a step's number");
    if (!step) return step.status();
    const auto forward = field("forward_seconds").non_negative(kRightSeconds);
    if (!forward) return forward.status();
    out.rank = static_cast<uint32_t>(*rank);
    out.step = *step;
    out.forward_seconds = *forward;
    return read_sample_times(field("tb"), out.backward_seconds);
  }

  Status read_sample_times(const JsonEntry& list, std::vector<double>& out) const {
    if (!list.value.is_array() || list.value.size() != trace_.tensors.size()) {
      return list.error("does not fit", "a list of one time per tensor");
    }
    for (size_t i = 0; i < list.value.size(); ++i) {
      const JsonEntry time{list.value[i], file_, fmt::format("{}[{}]", list.where, i)};
      const auto seconds = time.non_negative(kRightSeconds);
      if (!seconds) return seconds.status();
      out.push_back(*seconds);
    }
    return Status::ok();
  }

  const json& document_;
  const std::string_view file_;
  Trace trace_;
};

nlohmann::ordered_json types_of(const Trace& trace) {
  std::vector<std::string> types;
  for (const Trace::Tensor& tensor : trace.tensors) types.emplace_back(to_string(tensor.dtype));
  if (std::adjacent_find(types.begin(), types.end(), std::not_equal_to<>()) == types.end()) {
    return types.empty() ? to_string(DataType::Float32) : types.front();
  }
  return types;
}

}  // namespace

double Trace::backward_seconds() const {
  double sum = 0;
  for (const Tensor& tensor : tensors) sum += tensor.backward_seconds;
  return sum;
}

Result<Trace> parse_trace(std::string_view text, std::string_view file) {
  const auto document = parse_json_object(text, file);
  if (!document) return document.status();
  return TraceReader(*document, file).read();
}

Result<Trace> load_trace(const std::string& path) {
  const auto text = read_file(path, kTraceBytesMax);
  if (!text) return text.status();
  return parse_trace(*text, path);
}

std::string to_json(const Trace& trace) {
  nlohmann::ordered_json document;
  if (!trace.model.empty()) document["model"] = trace.model;
  document["dtype"] = types_of(trace);
  document["forward_seconds"] = trace.forward_seconds;
  for (const char* key : {"names", "numel", "tb"}) document[key] = json::array();
  for (const Trace::Tensor& tensor : trace.tensors) {
    document["names"].push_back(tensor.name);
    document["numel"].push_back(tensor.count);
    document["tb"].push_back(tensor.backward_seconds);
  }
  for (const Trace::Sample& sample : trace.samples) {
    document["samples"].push_back({{"rank", sample.rank},
                                   {"step", sample.step},
                                   {"forward_seconds", sample.forward_seconds},
                                   {"tb", sample.backward_seconds}});
  }
  // Names come from trainers and may be no UTF-8; a recording must not fail for that.
  return document.dump(-1, ' ', false, json::error_handler_t::replace);
}

}  // namespace braid
