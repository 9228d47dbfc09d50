// SPDX-License-Identifier: Apache-2.0
#include "planner/timing_log.h"

#include <charconv>
#include <cmath>
#include <limits>

#include "base/read_file.h"
#include "planner/json_input.h"

namespace braid {
namespace {

constexpr size_t kLogBytesMax = size_t{256} << 20;
constexpr std::string_view kBlanks = " \t\r";

struct Line {
  std::optional<uint32_t> ranks;
  CostMeasurement measurement;
};

std::string_view trimmed(std::string_view text) {
  const size_t begin = text.find_first_not_of(kBlanks);
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(kBlanks) + 1 - begin);
}

// Takes a number from the front of `text`.
template <typename T>
bool take(std::string_view& text, T& out) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), out);
  if (error != std::errc()) return false;
  text.remove_prefix(static_cast<size_t>(end - text.data()));
  return true;
}

Result<Line> parse_columns(std::string_view text, std::string_view where) {
  const Status wrong = make_status(
      StatusCode::InvalidArgument,
      "{}: '{}' is no measurement; right is [RANKS,]BYTES MICROSECONDS, or a line of braid-bench "
      "--json",
      where, text.substr(0, 40));
  Line line;
  double microseconds = 0;
  if (!take(text, line.measurement.bytes)) return wrong;
  if (text.starts_with(',')) {
    text.remove_prefix(1);
    if (line.measurement.bytes > std::numeric_limits<uint32_t>::max()) return wrong;
    line.ranks = static_cast<uint32_t>(line.measurement.bytes);
    text = trimmed(text);
    if (!take(text, line.measurement.bytes)) return wrong;
  }
  if (text.empty() || kBlanks.find(text.front()) == std::string_view::npos) return wrong;
  text = trimmed(text);
  if (!take(text, microseconds) || !text.empty()) return wrong;
  line.measurement.seconds = microseconds * 1e-6;
  return line;
}

Result<Line> parse_object(std::string_view text, std::string_view where) {
  const auto document = parse_json_object(text, where);
  if (!document) return document.status();
  for (const char* key : {"bytes", "median_seconds"}) {
    if (!document->contains(key)) {
      return make_status(StatusCode::InvalidArgument, "{}: {} is missing", where, key);
    }
  }
  if (const auto collective = document->find("collective");
      collective != document->end() && *collective != "all_reduce") {
    return make_status(StatusCode::InvalidArgument,
                       "{}: it is a time of {}; right are those of braid-bench all_reduce", where,
                       collective->dump());
  }
  const auto entry = [&](const char* key) { return JsonEntry{(*document)[key], where, key}; };
  constexpr uint32_t kMax = std::numeric_limits<uint32_t>::max();
  Line line;
  const auto bytes = entry("bytes").integer(1, uint64_t{1} << 62, "the size in bytes");
  if (!bytes) return bytes.status();
  const auto seconds = entry("median_seconds").number("a time in seconds");
  if (!seconds) return seconds.status();
  line.measurement.bytes = *bytes;
  line.measurement.seconds = *seconds;
  if (document->contains("ranks")) {
    const auto ranks = entry("ranks").integer(1, kMax, "a number of ranks");
    if (!ranks) return ranks.status();
    line.ranks = static_cast<uint32_t>(*ranks);
  }
  if (document->contains("concurrent")) {
    const auto concurrent =
        entry("concurrent").integer(1, FittedCost::kTransfersMax, "units in flight, this included");
    if (!concurrent) return concurrent.status();
    line.measurement.concurrent = static_cast<uint32_t>(*concurrent);
  }
  return line;
}

Status check(const CostMeasurement& measurement, std::string_view where) {
  if (measurement.bytes == 0) {
    return make_status(StatusCode::InvalidArgument, "{}: 0 bytes; right is 1 or more", where);
  }
  if (!(std::isfinite(measurement.seconds) && measurement.seconds > 0)) {
    return make_status(StatusCode::InvalidArgument,
                       "{}: {} seconds; right is a time of more than 0", where,
                       measurement.seconds);
  }
  return Status::ok();
}

Status join_ranks(std::optional<uint32_t>& ranks, std::optional<uint32_t> more,
                  std::string_view where) {
  if (ranks && more && *ranks != *more) {
    return make_status(StatusCode::InvalidArgument,
                       "{}: {} ranks, where {} were before; right is one number of ranks for one "
                       "model",
                       where, *more, *ranks);
  }
  if (more) ranks = more;
  return Status::ok();
}

}  // namespace

Result<TimingLog> parse_timing_log(std::string_view text, std::string_view file) {
  TimingLog log;
  for (size_t number = 1; !text.empty(); ++number) {
    const size_t end = std::min(text.find('\n'), text.size());
    const std::string_view content = trimmed(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
    if (content.empty() || content.starts_with('#')) continue;
    const std::string where = fmt::format("{}:{}", file, number);
    const auto line =
        content.starts_with('{') ? parse_object(content, where) : parse_columns(content, where);
    if (!line) return line.status();
    BRAID_RETURN_IF_ERROR(check(line->measurement, where));
    BRAID_RETURN_IF_ERROR(join_ranks(log.ranks, line->ranks, where));
    log.measurements.push_back(line->measurement);
  }
  if (log.measurements.empty()) {
    return make_status(StatusCode::InvalidArgument, "{}: has no measurement", file);
  }
  return log;
}

Result<TimingLog> load_timing_logs(const std::vector<std::string>& paths) {
  TimingLog all;
  for (const std::string& path : paths) {
    const auto text = read_file(path, kLogBytesMax);
    if (!text) return text.status();
    const auto log = parse_timing_log(*text, path);
    if (!log) return log.status();
    BRAID_RETURN_IF_ERROR(join_ranks(all.ranks, log->ranks, path));
    all.measurements.insert(all.measurements.end(), log->measurements.begin(),
                            log->measurements.end());
  }
  return all;
}

}  // namespace braid
