// SPDX-License-Identifier: Apache-2.0
#include "braidctl/command.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <filesystem>

#include <CLI/CLI.hpp>
#include <fmt/ranges.h>

#include "arguments/complete_words.h"
#include "base/amount.h"
#include "braidctl/status_view.h"
#include "planner/planner.h"

namespace braid {

void add_streams_option(CLI::App& command, uint32_t& streams) {
  command.add_option("--streams", streams, "units in flight at once")
      ->capture_default_str()
      ->check(is_integer(1, kCommandStreamsMax));
}

void add_slowdown_option(CLI::App& command, double& slowdown_of_two) {
  command
      .add_option("--slowdown-of-two", slowdown_of_two,
                  "how many times longer each of two simultaneous transfers takes than one alone: "
                  "2 if one fills the network, less if it cannot")
      ->capture_default_str()
      ->check(is_number(1, 2));
}

CLI::Validator is_planner() {
  std::vector<std::string_view> names;
  for (const Planner* planner : planners()) names.push_back(planner->name());
  return {[](const std::string& name) {
            const auto planner = find_planner(name);
            return planner ? std::string() : planner.status().message();
          },
          choices_text(names)};
}

CLI::Validator is_number(double low, double high) {
  return {[low, high](const std::string& text) {
            double value = 0;
            if (CLI::detail::lexical_cast(text, value) && value >= low && value <= high) {
              return std::string();
            }
            return fmt::format("'{}' does not fit; right is a number from {} to {}", text, low,
                               high);
          },
          ""};
}

CLI::Validator is_integer(uint64_t low, uint64_t high) {
  return {
      [low, high](const std::string& text) {
        uint64_t value = 0;
        const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
        if (error == std::errc() && end == text.data() + text.size() && value >= low &&
            value <= high) {
          return std::string();
        }
        return fmt::format("'{}' does not fit; right is an integer from {} to {}", text, low, high);
      },
      ""};
}

CLI::Validator is_not_negative() {
  return {[](const std::string& text) {
            double value = 0;
            if (CLI::detail::lexical_cast(text, value) && std::isfinite(value) && value >= 0) {
              return std::string();
            }
            return fmt::format("'{}' does not fit; right is a number from 0, such as 4.5e-5", text);
          },
          ""};
}

CLI::Validator as_size() {
  return {[](std::string& text) {
            static const CLI::AsSizeValue kAsSize(/*kb_is_1000=*/true);
            const std::string given = text;
            // Read as an unsigned number, -3 would be a very large one.
            const bool begins = !text.empty() && text.front() >= '0' && text.front() <= '9';
            if (begins && kAsSize(text).empty()) return std::string();
            return fmt::format("'{}' is no size; right is such as 65536, 64KiB or 1MB", given);
          },
          "SIZE"};
}

void name_after_file(Trace& trace, const std::string& path) {
  if (trace.model.empty()) trace.model = std::filesystem::path(path).stem().string();
}

Status check_codecs_fit(const Trace& trace, const std::string& source) {
  for (size_t i = 0; i < trace.tensors.size(); ++i) {
    if (trace.tensors[i].dtype == DataType::Float32) continue;
    return make_status(StatusCode::InvalidArgument,
                       "{}: names[{}] '{}' is {}; codecs encode float32 alone", source, i,
                       trace.tensors[i].name, to_string(trace.tensors[i].dtype));
  }
  return Status::ok();
}

std::optional<std::string> extrapolation_warning(const FittedCost& cost,
                                                 std::span<const uint64_t> message_bytes,
                                                 const std::string& what) {
  const auto outside = std::count_if(message_bytes.begin(), message_bytes.end(),
                                     [&cost](uint64_t bytes) { return !cost.covers(bytes); });
  if (outside == 0) return std::nullopt;
  const auto [low, high] = std::minmax_element(message_bytes.begin(), message_bytes.end());
  return fmt::format(
      "{} of {} messages ({} to {}) lie outside the sizes that {} was measured at ({} to {}); "
      "their times are extrapolated",
      outside, message_bytes.size(), format_amount(*low), format_amount(*high), what,
      format_amount(cost.bytes_min()), format_amount(cost.bytes_max()));
}

}  // namespace braid
