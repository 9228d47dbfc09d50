// SPDX-License-Identifier: Apache-2.0
#include "bench/operation_counts.h"

#include <algorithm>
#include <chrono>
#include <thread>
#include <utility>

#include <fmt/format.h>
#include <unistd.h>

#include "client/status_client.h"
#include "metrics/status.h"
#include "proto/chunk.h"

namespace braid::bench {
namespace {

constexpr uint32_t kStatusWaitMs = 10'000;
constexpr auto kSettleTime = std::chrono::milliseconds(2 * proto::kAckLateMs);

Result<DaemonStatus> status_of(const std::string& socket_path) {
  const auto json = query_status(socket_path, kStatusWaitMs);
  return json ? parse_status(*json) : json.status();
}

std::string text_of(const std::optional<double>& value) {
  return value ? fmt::format("{:.1f}", *value) : "-";
}

std::optional<uint64_t> difference(std::optional<uint64_t> before, std::optional<uint64_t> after) {
  // A thread that has ended takes its switches with it.
  return before && after ? std::optional(*after - std::min(*before, *after)) : std::nullopt;
}

}  // namespace

std::string counts_lines(const OperationCounts& counts) {
  const auto row = [](const auto&... cells) {
    return fmt::format("# {:<28}  {:>12}  {:>8}  {:>11}  {:>11}  {:>11}  {:>11}", cells...);
  };
  std::string text = row(fmt::format("each of {} in a row", counts.operations), "system calls",
                         "wake-ups", "reduced (B)", "copied (B)", "sent (B)", "received (B)");
  const auto bytes = [](const std::optional<double>& value) {
    return value ? fmt::format("{:.0f}", *value) : "-";
  };
  text += '\n' + row("braidd, of a node", text_of(counts.daemon.system_calls),
                     text_of(counts.daemon.wake_ups), bytes(counts.reduced), bytes(counts.copied),
                     bytes(counts.sent), bytes(counts.received));
  text += '\n' + row("trainer, of a rank", text_of(counts.trainer.system_calls),
                     text_of(counts.trainer.wake_ups), "0", "0", "0", "0");
  if (!counts.why_not.empty()) text += fmt::format("\n# -: {}", counts.why_not);
  return text;
}

Result<OperationCounter> OperationCounter::create(const Environment& environment,
                                                  const std::string& socket_path) {
  OperationCounter counter(socket_path, EventCounts(::getpid()));
  const auto status = status_of(socket_path);
  if (!status) return status.status();
  const auto job = std::ranges::find(status->jobs, environment.job_name, &DaemonStatus::Job::name);
  if (job == status->jobs.end() || job->local_ranks.empty()) {
    return make_status(StatusCode::NotFound, "braidd on node '{}' does not know the job '{}'",
                       status->node.name, environment.job_name);
  }
  counter.nodes_ = static_cast<double>(job->nodes.size());
  counter.ranks_ = job->world_size;
  const auto first = std::ranges::min_element(job->local_ranks, {}, &DaemonStatus::LocalRank::rank);
  if (first->rank != environment.rank) return counter;
  const auto daemon = process_behind(socket_path);
  if (!daemon) return daemon.status();
  counter.daemon_.emplace(*daemon);
  return counter;
}

OperationCounter::Counted OperationCounter::read(const EventCounts& events) {
  Counted counted;
  const auto wake_ups = events.wake_ups();
  const auto calls = events.system_calls();
  for (const Status& failed : {wake_ups.status(), calls.status()}) {
    if (!failed && why_not_.empty()) why_not_ = failed.message();
  }
  if (wake_ups) counted.wake_ups = *wake_ups;
  if (calls) counted.system_calls = *calls;
  return counted;
}

Result<OperationCounter::Bytes> OperationCounter::read_bytes() const {
  const auto status = status_of(socket_path_);
  if (!status) return status.status();
  const auto counter = [&](const char* name) {
    const auto found = status->counters.find(name);
    return found == status->counters.end() ? std::nullopt : std::optional(found->second);
  };
  return Bytes{counter("braid_engine_bytes_total.reduced"),
               counter("braid_engine_bytes_total.copied"), counter("braid_wire_bytes_total.sent"),
               counter("braid_wire_bytes_total.received")};
}

// A question to the daemon is outside of what is counted of it.
Status OperationCounter::begin() {
  std::this_thread::sleep_for(kSettleTime);
  if (daemon_) {
    auto bytes = read_bytes();
    if (!bytes) return bytes.status();
    bytes_ = *bytes;
    daemon_counted_ = read(*daemon_);
  }
  trainer_counted_ = read(trainer_);
  return Status::ok();
}

Status OperationCounter::end() {
  const Counted trainer = read(trainer_);
  trainer_counted_ = {difference(trainer_counted_.system_calls, trainer.system_calls),
                      difference(trainer_counted_.wake_ups, trainer.wake_ups)};
  std::this_thread::sleep_for(kSettleTime);
  if (!daemon_) return Status::ok();
  const Counted daemon = read(*daemon_);
  daemon_counted_ = {difference(daemon_counted_.system_calls, daemon.system_calls),
                     difference(daemon_counted_.wake_ups, daemon.wake_ups)};
  const auto bytes = read_bytes();
  if (!bytes) return bytes.status();
  bytes_ = {difference(bytes_.reduced, bytes->reduced), difference(bytes_.copied, bytes->copied),
            difference(bytes_.sent, bytes->sent), difference(bytes_.received, bytes->received)};
  return Status::ok();
}

Result<OperationCounts> OperationCounter::share(Ranks& ranks, uint64_t operations) const {
  Status shared;
  // What one rank should count and cannot is not known.
  const auto average = [&](std::optional<uint64_t> own, bool counts, double of) {
    double missing = counts && !own ? 1 : 0;
    auto value = static_cast<double>(own.value_or(0));
    if (shared) shared = ranks.sum(missing);
    if (shared) shared = ranks.sum(value);
    return missing == 0 ? std::optional(value / of / static_cast<double>(operations))
                        : std::nullopt;
  };
  const auto of_trainer = [&](std::optional<uint64_t> own) { return average(own, true, ranks_); };
  const auto of_daemon = [&](std::optional<uint64_t> own) {
    return average(own, daemon_.has_value(), nodes_);
  };
  OperationCounts counts;
  counts.operations = operations;
  counts.daemon.system_calls = of_daemon(daemon_counted_.system_calls);
  counts.daemon.wake_ups = of_daemon(daemon_counted_.wake_ups);
  counts.trainer.system_calls = of_trainer(trainer_counted_.system_calls);
  counts.trainer.wake_ups = of_trainer(trainer_counted_.wake_ups);
  counts.reduced = of_daemon(bytes_.reduced);
  counts.copied = of_daemon(bytes_.copied);
  counts.sent = of_daemon(bytes_.sent);
  counts.received = of_daemon(bytes_.received);
  counts.why_not = why_not_;
  if (!shared) return shared;
  return counts;
}

}  // namespace braid::bench
