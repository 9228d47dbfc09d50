// SPDX-License-Identifier: Apache-2.0
#include "check/path_facts.h"

#include <cmath>
#include <exception>
#include <stdexcept>
#include <utility>

#include <nlohmann/json.hpp>

namespace braid {
namespace {

using PathJson = nlohmann::ordered_json;

constexpr size_t kPathTextBytesMax = 4096;
constexpr size_t kPathRailsMax = 256;

std::string dumped(const PathJson& json) {
  return json.dump(-1, ' ', false, PathJson::error_handler_t::replace);
}

// --- what is written ---

PathJson written(const PathEnd& end) {
  PathJson rails = PathJson::array();
  for (const PathEnd::Rail& rail : end.rails) {
    rails.push_back({{"name", rail.name},
                     {"address", rail.address},
                     {"mtu", rail.mtu},
                     {"speed_mbit", rail.speed_mbit},
                     {"up", rail.is_up}});
  }
  return {{"name", end.name},
          {"address", end.address},
          {"port", end.port},
          {"version", end.version},
          {"unit_bytes", end.unit_bytes},
          {"chunk_bytes", end.chunk_bytes},
          {"io_loops", end.io_loops},
          {"flows_per_link", end.flows_per_link},
          {"wall_ns", end.wall_ns},
          {"rails", std::move(rails)}};
}

PathJson written(const PathBack& back) {
  return {{"control", back.control}, {"flows", back.flows}};
}

PathJson written(const PathRate& rate) {
  return {{"error", rate.error},
          {"flows", rate.flows},
          {"bytes", rate.bytes},
          {"nanoseconds", rate.nanoseconds},
          {"segments", rate.segments},
          {"segments_resent", rate.segments_resent},
          {"slowest_flow", rate.slowest_flow},
          {"median_flow", rate.median_flow},
          {"flows_failed", rate.flows_failed},
          {"flow_error", rate.flow_error}};
}

PathJson written(const std::optional<PathRate>& rate) { return rate ? written(*rate) : PathJson(); }

// --- what is read; throws ---

void expect(bool is_right, const char* key) {
  if (!is_right) throw std::invalid_argument(key);
}

std::string text_at(const PathJson& json, const char* key) {
  auto text = json.at(key).get<std::string>();
  expect(text.size() <= kPathTextBytesMax, key);
  return text;
}

template <typename Number>
Number number_at(const PathJson& json, const char* key) {
  const PathJson& value = json.at(key);
  expect(value.is_number_unsigned() && std::in_range<Number>(value.get<uint64_t>()), key);
  return static_cast<Number>(value.get<uint64_t>());
}

double rate_at(const PathJson& json, const char* key) {
  const auto value = json.at(key).get<double>();
  expect(std::isfinite(value) && value >= 0, key);
  return value;
}

void read(const PathJson& json, PathEnd& end) {
  end.name = text_at(json, "name");
  end.address = text_at(json, "address");
  end.port = number_at<uint16_t>(json, "port");
  end.version = text_at(json, "version");
  end.unit_bytes = number_at<uint64_t>(json, "unit_bytes");
  end.chunk_bytes = number_at<uint32_t>(json, "chunk_bytes");
  end.io_loops = number_at<uint32_t>(json, "io_loops");
  end.flows_per_link = number_at<uint32_t>(json, "flows_per_link");
  end.wall_ns = number_at<uint64_t>(json, "wall_ns");
  const PathJson& rails = json.at("rails");
  expect(rails.is_array() && rails.size() <= kPathRailsMax, "rails");
  for (const PathJson& rail : rails) {
    end.rails.push_back({text_at(rail, "name"), text_at(rail, "address"),
                         number_at<uint32_t>(rail, "mtu"), number_at<uint32_t>(rail, "speed_mbit"),
                         rail.at("up").get<bool>()});
  }
}

void read(const PathJson& json, PathBack& back) {
  back.control = text_at(json, "control");
  back.flows = text_at(json, "flows");
}

void read(const PathJson& json, PathRate& rate) {
  rate.error = text_at(json, "error");
  rate.flows = number_at<uint32_t>(json, "flows");
  rate.bytes = number_at<uint64_t>(json, "bytes");
  rate.nanoseconds = number_at<uint64_t>(json, "nanoseconds");
  rate.segments = number_at<uint64_t>(json, "segments");
  rate.segments_resent = number_at<uint64_t>(json, "segments_resent");
  rate.slowest_flow = rate_at(json, "slowest_flow");
  rate.median_flow = rate_at(json, "median_flow");
  rate.flows_failed = number_at<uint32_t>(json, "flows_failed");
  rate.flow_error = text_at(json, "flow_error");
}

void read(const PathJson& json, std::optional<PathRate>& rate) {
  if (!json.is_null()) read(json, rate.emplace());
}

void read(const PathJson& json, PathFacts& facts) {
  facts.asked = text_at(json, "asked");
  facts.error = text_at(json, "error");
  if (!facts.error.empty()) return;
  read(json.at("here"), facts.here);
  read(json.at("there"), facts.there);
  facts.round_trip_ns = number_at<uint64_t>(json, "round_trip_ns");
  facts.clock_ahead_ns = json.at("clock_ahead_ns").get<int64_t>();
  facts.clock_error_ns = number_at<uint64_t>(json, "clock_error_ns");
  read(json.at("to_there"), facts.to_there);
  read(json.at("to_here"), facts.to_here);
  read(json.at("one_to_there"), facts.one_to_there);
  read(json.at("one_to_here"), facts.one_to_here);
  read(json.at("all_to_there"), facts.all_to_there);
  read(json.at("all_to_here"), facts.all_to_here);
}

template <typename Facts>
Result<Facts> parsed(std::string_view json) {
  if (json.size() > kPathJsonBytesMax)
    return make_status(StatusCode::Protocol, "an answer of {} bytes is too long", json.size());
  try {
    Facts facts;
    read(PathJson::parse(json), facts);
    return facts;
  } catch (const std::exception& error) {
    return make_status(StatusCode::Protocol, "an answer that is not understood ({})", error.what());
  }
}

}  // namespace

std::string to_json(const PathEnd& end) { return dumped(written(end)); }
std::string to_json(const PathBack& back) { return dumped(written(back)); }
std::string to_json(const PathRate& rate) { return dumped(written(rate)); }

std::string to_json(const PathFacts& facts) {
  return dumped({{"asked", facts.asked},
                 {"error", facts.error},
                 {"here", written(facts.here)},
                 {"there", written(facts.there)},
                 {"round_trip_ns", facts.round_trip_ns},
                 {"clock_ahead_ns", facts.clock_ahead_ns},
                 {"clock_error_ns", facts.clock_error_ns},
                 {"to_there", written(facts.to_there)},
                 {"to_here", written(facts.to_here)},
                 {"one_to_there", written(facts.one_to_there)},
                 {"one_to_here", written(facts.one_to_here)},
                 {"all_to_there", written(facts.all_to_there)},
                 {"all_to_here", written(facts.all_to_here)}});
}

Result<PathEnd> parse_path_end(std::string_view json) { return parsed<PathEnd>(json); }
Result<PathBack> parse_path_back(std::string_view json) { return parsed<PathBack>(json); }
Result<PathRate> parse_path_rate(std::string_view json) { return parsed<PathRate>(json); }
Result<PathFacts> parse_path_facts(std::string_view json) { return parsed<PathFacts>(json); }

}  // namespace braid
