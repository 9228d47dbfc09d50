// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include <fmt/format.h>

namespace braid {

// Names come from trainers and may be no UTF-8.
std::string to_json_text(const std::string& text);

// Puts together a document of Chrome's trace event format. Names are JSON strings already, as are
// the members of `args`: `"step":3,"bytes":10`.
class TraceWriter {
 public:
  TraceWriter();

  void name_process(uint32_t process, const std::string& name, uint32_t sort_index);
  // Tracks stand in the order of their numbers.
  void name_track(uint32_t process, uint32_t track, const std::string& name);
  void add_span(uint32_t process, uint32_t track, std::string_view name, uint64_t begin_ns,
                uint64_t end_ns, std::string_view args);
  void add_instant(uint32_t process, uint32_t track, std::string_view name, uint64_t at_ns,
                   std::string_view args);
  // `metadata`: the members of otherData.
  std::string finish(std::string_view metadata);

 private:
  template <typename... Args>
  void add(fmt::format_string<Args...> format, Args&&... args);

  fmt::memory_buffer out_;
  bool is_first_ = true;
};

}  // namespace braid
