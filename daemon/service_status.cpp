// SPDX-License-Identifier: Apache-2.0
#include "daemon/service_status.h"

#include <algorithm>
#include <cstdlib>

#include <fmt/format.h>
#include <systemd/sd-daemon.h>

#include "base/log_text.h"
#include "explain/job_view.h"

namespace braid {
namespace {

constexpr uint64_t kCountDownMs = 1000;

std::string jobs_text(size_t jobs) {
  return fmt::format("{} job{}", grouped(jobs), jobs == 1 ? "" : "s");
}

}  // namespace

ServiceStatus::ServiceStatus(Loop& loop, const Clock& clock, std::function<Numbers()> numbers)
    : clock_(clock),
      numbers_(std::move(numbers)),
      is_heard_(std::getenv("NOTIFY_SOCKET") != nullptr),
      timer_(loop) {}

void ServiceStatus::tell_ready() {
  is_ready_ = true;
  if (!is_heard_) return;
  told_ = numbers_();
  tell(text_of(told_, 0), "READY=1\n");
}

void ServiceStatus::note() {
  if (!is_heard_ || !is_ready_ || stops_at_ms_ != 0 || timer_.is_active()) return;
  if (numbers_() == told_) return;
  const uint64_t passed_ms = clock_.now_ms() - told_ms_;
  if (passed_ms >= kPeriodMs) return look();
  timer_.start_once(kPeriodMs - passed_ms, [this] { look(); });
}

void ServiceStatus::look() {
  const Numbers now = numbers_();
  const uint64_t passed_ms = std::max<uint64_t>(1, clock_.now_ms() - told_ms_);
  const uint64_t bytes = now.bytes_sent - told_.bytes_sent;
  told_ = now;
  told_ms_ = clock_.now_ms();
  tell(text_of(now, static_cast<double>(bytes) * 1e3 / static_cast<double>(passed_ms)));
  // The rate becomes another one, or none, without anything else that changes.
  if (bytes != 0) timer_.start_once(kPeriodMs, [this] { look(); });
}

void ServiceStatus::tell_stopping(uint32_t timeout_ms) {
  stops_at_ms_ = clock_.now_ms() + timeout_ms;
  timer_.stop();
  if (!is_heard_) return;
  tell("", "STOPPING=1\n");
  count_down();
  timer_.start_repeating(kCountDownMs, [this] { count_down(); });
}

void ServiceStatus::count_down() {
  const Numbers now = numbers_();
  const uint64_t now_ms = clock_.now_ms();
  const size_t jobs = now.jobs_running + now.jobs_forming;
  if (jobs == 0 || now_ms >= stops_at_ms_) return tell("closes its connections");
  tell(fmt::format("waits for {}, {} s left", jobs_text(jobs),
                   (stops_at_ms_ - now_ms + 999) / 1000));
}

void ServiceStatus::tell(const std::string& text, const char* state) {
  if (text == told_text_ && *state == '\0') return;
  told_text_ = text;
  told_ms_ = clock_.now_ms();
  ::sd_notify(0, fmt::format("{}{}{}", state, text.empty() ? "" : "STATUS=", text).c_str());
}

std::string ServiceStatus::text_of(const Numbers& numbers, double bytes_per_second) const {
  std::string text = "no jobs";
  if (const size_t jobs = numbers.jobs_running + numbers.jobs_forming; jobs != 0) {
    text = jobs_text(jobs);
    const bool all_run = numbers.jobs_forming == 0, none_runs = numbers.jobs_running == 0;
    if (!all_run && !none_runs)
      text += fmt::format(" ({} train, {} form)", numbers.jobs_running, numbers.jobs_forming);
    else
      text += all_run ? " (training)" : " (forming)";
  }
  text += fmt::format(", {} flows open", grouped(numbers.flows_open));
  if (numbers.flows_failed != 0) text += fmt::format(", {} failed", grouped(numbers.flows_failed));
  if (bytes_per_second >= 1e3) text += "; sends " + format_rate(bytes_per_second);
  return text;
}

}  // namespace braid
