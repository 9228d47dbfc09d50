// SPDX-License-Identifier: Apache-2.0
#include "timeline/trace_writer.h"

#include <iterator>
#include <utility>

#include <nlohmann/json.hpp>

namespace braid {

std::string to_json_text(const std::string& text) {
  return nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

TraceWriter::TraceWriter() {
  fmt::format_to(std::back_inserter(out_), R"({{"displayTimeUnit":"ms","traceEvents":[)");
}

template <typename... Args>
void TraceWriter::add(fmt::format_string<Args...> format, Args&&... args) {
  fmt::format_to(std::back_inserter(out_), "{}\n", is_first_ ? "" : ",");
  is_first_ = false;
  fmt::format_to(std::back_inserter(out_), format, std::forward<Args>(args)...);
}

void TraceWriter::name_process(uint32_t process, const std::string& name, uint32_t sort_index) {
  add(R"({{"ph":"M","name":"process_name","pid":{},"args":{{"name":{}}}}})", process,
      to_json_text(name));
  add(R"({{"ph":"M","name":"process_sort_index","pid":{},"args":{{"sort_index":{}}}}})", process,
      sort_index);
}

void TraceWriter::name_track(uint32_t process, uint32_t track, const std::string& name) {
  add(R"({{"ph":"M","name":"thread_name","pid":{},"tid":{},"args":{{"name":{}}}}})", process, track,
      to_json_text(name));
  add(R"({{"ph":"M","name":"thread_sort_index","pid":{},"tid":{},"args":{{"sort_index":{}}}}})",
      process, track, track);
}

void TraceWriter::add_span(uint32_t process, uint32_t track, std::string_view name,
                           uint64_t begin_ns, uint64_t end_ns, std::string_view args) {
  add(R"({{"ph":"X","pid":{},"tid":{},"name":{},"ts":{}.{:03},"dur":{}.{:03},"args":{{{}}}}})",
      process, track, name, begin_ns / 1000, begin_ns % 1000, (end_ns - begin_ns) / 1000,
      (end_ns - begin_ns) % 1000, args);
}

void TraceWriter::add_instant(uint32_t process, uint32_t track, std::string_view name,
                              uint64_t at_ns, std::string_view args) {
  add(R"({{"ph":"i","s":"t","pid":{},"tid":{},"name":{},"ts":{}.{:03},"args":{{{}}}}})", process,
      track, name, at_ns / 1000, at_ns % 1000, args);
}

std::string TraceWriter::finish(std::string_view metadata) {
  fmt::format_to(std::back_inserter(out_), "\n],\"otherData\":{{{}}}}}\n", metadata);
  return fmt::to_string(out_);
}

}  // namespace braid
