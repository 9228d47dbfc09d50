// SPDX-License-Identifier: Apache-2.0
#include "braidctl/sweep_updates.h"

#include <cmath>
#include <memory>

#include <fmt/format.h>

#include "base/amount.h"
#include "base/assert.h"
#include "braidctl/status_view.h"
#include "braidctl/text_table.h"
#include "codec/gradient_codec.h"

namespace braid {
namespace {

// The share of the transfer's seconds that is adding: what goes when γ is 0.
Result<double> adding_share_of(const SweepOptions& options, uint32_t workers, double per_byte) {
  if (per_byte == 0) return 0.0;
  LinkCost link = options.link;
  link.reduce_seconds_per_byte = 0;
  AlgorithmOptions algorithm_options = options.algorithm_options;
  if (algorithm_options.inside) algorithm_options.inside->reduce_seconds_per_byte = 0;
  const auto sending = algorithm_cost(options.algorithm, workers, link, algorithm_options);
  if (!sending) return sending.status();
  return 1 - sending->seconds_per_byte / per_byte;
}

// How many bytes a node sends in an all-reduce of one byte: what that costs where each byte sent
// costs a second and nothing else does.
Result<double> bytes_sent_per_byte(const SweepOptions& options, uint32_t workers) {
  const LinkCost only_bytes = {0, 1, 0};
  AlgorithmOptions algorithm_options = options.algorithm_options;
  algorithm_options.inside = only_bytes;
  const auto cost = algorithm_cost(options.algorithm, workers, only_bytes, algorithm_options);
  if (!cost) return cost.status();
  return cost->seconds_per_byte;
}

Result<UpdateOptions> update_options_of(const SweepOptions& options, uint32_t workers,
                                        const LinearCostModel& cost) {
  UpdateOptions update;
  update.simulator = options.simulator;
  update.simulator.workers = workers;
  update.planning.streams = options.simulator.streams;
  const auto adding = adding_share_of(options, workers, cost.lines().front().seconds_per_byte);
  if (!adding) return adding.status();
  update.adding_share = *adding;
  auto codec = make_codec(default_codec_spec(CodecKind::TwoBit));
  if (!codec) return codec.status();
  // The nodes' parts of a unit are whole rows of the codec (Partition cuts at 64 bytes), so
  // together they have as many bytes as the unit encoded in one piece.
  update.encoded_bytes =
      [two_bit = std::shared_ptr<GradientCodec>(std::move(codec).value())](uint64_t bytes) {
        return two_bit->encoded_bytes_max((bytes + sizeof(float) - 1) / sizeof(float));
      };
  return update;
}

}  // namespace

double speedup_over_one(const Workload& workload, uint32_t workers, double iteration_seconds) {
  if (iteration_seconds <= 0) return workers;
  return workers * (workload.forward_seconds + workload.backward_seconds()) / iteration_seconds;
}

Status add_update_rows(const Workload& workload, const SweepOptions& options, uint32_t workers,
                       const LinearCostModel& cost, std::vector<SweepRow>& rows) {
  const auto update_options = update_options_of(options, workers, cost);
  if (!update_options) return update_options.status();
  const auto sent = bytes_sent_per_byte(options, workers);
  if (!sent) return sent.status();
  for (const Planner* planner : options.planners) {
    const auto sync = simulate_update(workload, cost, *planner, {}, *update_options);
    if (!sync) return sync.status();
    for (const UpdateMethod& method : options.updates) {
      const auto times = simulate_update(workload, cost, *planner, method, *update_options);
      if (!times) return times.status();
      const double seconds = times->iteration_seconds;
      SweepUpdate update{method, *times};
      update.wire_bytes = *sent * times->wire_share * static_cast<double>(workload.bytes());
      update.speedup_over_sync = seconds > 0 ? sync->iteration_seconds / seconds : 1;
      rows.push_back({workers, planner->name(), seconds,
                      speedup_over_one(workload, workers, seconds), times->groups, update});
    }
  }
  return Status::ok();
}

std::string updates_table(const Trace& trace, const SweepOptions& options,
                          const std::vector<SweepRow>& rows) {
  std::string out = fmt::format(
      "{}; one worker: {}\n"
      "means of a step; hidden: of the communication that compute can hide; wire: what a node "
      "sends; over sync: iteration with sync / iteration\n\n",
      describe(options), format_seconds(trace.forward_seconds + trace.backward_seconds()));
  std::vector<std::vector<std::string>> cells = {{"WORKERS", "PLANNER", "UPDATE", "ITERATION",
                                                  "COMPUTE", "COMMUNICATION", "EXPOSED", "HIDDEN",
                                                  "WIRE", "OF SYNC", "OVER SYNC"}};
  for (const SweepRow& row : rows) {
    BRAID_ASSERT(row.update, "each row of a sweep with update methods has one");
    const UpdateTimes& times = row.update->times;
    cells.push_back(
        {std::to_string(row.workers), std::string(row.planner), to_string(row.update->method),
         format_seconds(row.iteration_seconds), format_seconds(times.compute_seconds),
         format_seconds(times.communication_seconds), format_seconds(times.exposed_seconds),
         fmt::format("{:.1f} %", times.hidden_share() * 100),
         format_amount(static_cast<uint64_t>(std::llround(row.update->wire_bytes))),
         fmt::format("{:.4g} %", times.wire_share * 100),
         fmt::format("{:.2f}", row.update->speedup_over_sync)});
  }
  return out + render_table(cells);
}

}  // namespace braid
