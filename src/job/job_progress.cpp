// SPDX-License-Identifier: Apache-2.0
#include "job/job_progress.h"

#include <fmt/format.h>

#include "base/amount.h"
#include "base/log_text.h"
#include "explain/job_view.h"

namespace braid {
namespace {

std::string counted(uint64_t number, std::string_view one) {
  return fmt::format("{} {}{}", grouped(number), one, number == 1 ? "" : "s");
}

}  // namespace

JobProgress::JobProgress(const JobNumbers& numbers, uint32_t ranks, uint32_t nodes, uint64_t now_ns)
    : numbers_(numbers),
      ranks_(ranks),
      who_(fmt::format("({} on {})", counted(ranks, "rank"), counted(nodes, "node"))),
      began_ns_(now_ns),
      told_ns_(now_ns) {}

JobProgress::Done JobProgress::done() const {
  return {numbers_.steps.get(),      numbers_.step_ns.get(),          numbers_.exposed_ns.get(),
          numbers_.operations.get(), numbers_.all_reduce_bytes.get(), numbers_.all_reduce_ns.get()};
}

JobProgress::Done JobProgress::between(const Done& before, const Done& after) {
  return {after.steps - before.steps,
          after.step_ns - before.step_ns,
          after.exposed_ns - before.exposed_ns,
          after.operations - before.operations,
          after.all_reduce_bytes - before.all_reduce_bytes,
          after.all_reduce_ns - before.all_reduce_ns};
}

void JobProgress::log(const JobLabel& job, uint32_t period_s, uint64_t now_ns) {
  if (period_s == 0) return;
  if (const auto line = take_line(uint64_t{period_s} * 1'000'000'000, now_ns))
    BRAID_LOG_INFO(LogFields{.job = job}, "job '{}' {}", job.name, *line);
}

void JobProgress::log_end(const JobLabel& job, uint32_t period_s, std::string_view how,
                          uint64_t now_ns) const {
  if (period_s == 0) return;
  BRAID_LOG_INFO(LogFields{.job = job}, "job '{}' {}", job.name, summary(how, now_ns));
}

std::optional<std::string> JobProgress::take_line(uint64_t period_ns, uint64_t now_ns) {
  if (now_ns - told_ns_ < period_ns) return std::nullopt;
  const Done now = done();
  const Done since = between(told_, now);
  if (since.operations == 0 && since.steps == 0) return std::nullopt;
  const std::string time = format_duration(to_seconds(now_ns - told_ns_));
  told_ns_ = now_ns;
  told_ = now;
  const bool has_steps = since.steps != 0;
  return fmt::format("{}: {}, {} of them in the last {}{}{}", who_,
                     has_steps ? counted(now.steps, "step") : counted(now.operations, "operation"),
                     grouped(has_steps ? since.steps : since.operations), time, steps_text(since),
                     bandwidth_text(since));
}

std::string JobProgress::summary(std::string_view how, uint64_t now_ns) const {
  const Done all = done();
  const std::string steps =
      all.steps == 0 ? "" : counted(all.steps, "step") + steps_text(all) + "; ";
  return fmt::format("{} {} after {}: {}{}, {}{}", who_, how,
                     format_duration(to_seconds(now_ns - began_ns_)), steps,
                     counted(all.operations, "operation"),
                     format_amount(numbers_.operation_bytes.get()), bandwidth_text(all));
}

std::string JobProgress::steps_text(const Done& done) {
  if (done.steps == 0) return {};
  const auto steps = static_cast<double>(done.steps);
  const double step = to_seconds(done.step_ns) / steps;
  const double exposed = to_seconds(done.exposed_ns) / steps;
  return fmt::format("; {} a step, {} of it exposed ({:.0f} %)", format_time(step),
                     format_time(exposed), step > 0 ? exposed / step * 100 : 0);
}

std::string JobProgress::bandwidth_text(const Done& done) const {
  if (done.all_reduce_ns == 0 || ranks_ < 2) return {};
  const double share = 2.0 * (ranks_ - 1) / ranks_;
  const double rate =
      share * static_cast<double>(done.all_reduce_bytes) / to_seconds(done.all_reduce_ns);
  return fmt::format("; all-reduces run at {} bus bandwidth", format_rate(rate));
}

}  // namespace braid
