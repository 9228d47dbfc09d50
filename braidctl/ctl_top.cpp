// SPDX-License-Identifier: Apache-2.0
#include "braidctl/ctl_top.h"

#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <future>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <sys/eventfd.h>
#include <unistd.h>

#include "base/fd.h"
#include "braidctl/status_view.h"
#include "braidctl/terminal.h"
#include "braidctl/top_view.h"

namespace braid {
namespace {

using TopClock = std::chrono::steady_clock;

// What a look finds: the jobs, and from the second one on what they do.
struct TopLook {
  JobsLook jobs;
  std::optional<std::vector<JobLine>> lines;
};

Result<TopLook> take_look(const DaemonSource& daemon, const std::optional<JobsLook>& before) {
  auto after = look_at_jobs(daemon);
  if (!after) return after.status();
  TopLook look{std::move(*after), std::nullopt};
  if (!before) return look;
  auto lines = compare_looks(daemon, *before, look.jobs);
  if (!lines) return lines.status();
  look.lines = std::move(*lines);
  return look;
}

// Takes looks on another thread, so that keys and signals need not wait for the nodes.
class Looker {
 public:
  explicit Looker(const DaemonSource& daemon) : daemon_(daemon) {}

  int descriptor() const { return done_.get(); }  // readable when one is taken
  void begin() {
    coming_ = std::async(std::launch::async, [this] {
      auto look = take_look(daemon_, before_);
      const uint64_t one = 1;
      [[maybe_unused]] const auto written = ::write(done_.get(), &one, sizeof(one));
      return look;
    });
  }
  Result<TopLook> take() {
    uint64_t times = 0;
    [[maybe_unused]] const auto read = ::read(done_.get(), &times, sizeof(times));
    auto look = coming_.get();
    if (look) before_ = look->jobs;
    return look;
  }

 private:
  const DaemonSource& daemon_;
  const Fd done_{::eventfd(0, EFD_CLOEXEC)};
  std::optional<JobsLook> before_;
  std::future<Result<TopLook>> coming_;  // waits for the thread when it goes
};

bool has_colours() {
  const char* none = std::getenv("NO_COLOR");  // https://no-color.org
  return none == nullptr || *none == '\0';
}

struct TopEnd {
  Status status;
  int signal = 0;
};

// Until the user, a signal, the last table or an error ends it. The terminal is as it was then.
TopEnd show_until_end(Looker& looker, const TopCommand& command) {
  auto terminal = Terminal::open();
  if (!terminal) return {terminal.status()};
  TopView view(has_colours());
  view.set_lines({}, "asks the daemon ...");
  const auto pause = std::chrono::duration_cast<TopClock::duration>(
      std::chrono::duration<double>(command.seconds));
  TopClock::time_point next = TopClock::time_point::max();  // a look is under way
  looker.begin();
  for (uint32_t shown = 0; command.count == 0 || shown < command.count;) {
    // Nobody reads it any more: that is its end.
    if (!(*terminal)->draw(view.render((*terminal)->size()))) return {};
    const auto event = (*terminal)->wait(next, looker.descriptor());
    switch (event.kind) {
      case Terminal::Event::Kind::Key:
        if (view.on_key(event.key, event.character)) return {};
        break;
      case Terminal::Event::Kind::Ended:
        return {Status::ok(), event.signal};
      case Terminal::Event::Kind::Woken: {
        auto look = looker.take();
        if (!look) return {look.status()};
        if (look->lines) {
          std::string note = hidden_line(look->jobs.hidden);
          std::erase(note, '\n');
          view.set_lines(std::move(*look->lines), std::move(note));
          ++shown;
        }
        next = TopClock::now() + pause;
        break;
      }
      case Terminal::Event::Kind::Timeout:
        if (TopClock::now() < next) break;
        next = TopClock::time_point::max();
        looker.begin();
        break;
      case Terminal::Event::Kind::Resized:
        break;
    }
  }
  return {};
}

Result<CommandOutput> run_on_terminal(const DaemonSource& daemon, const TopCommand& command) {
  Looker looker(daemon);
  const TopEnd end = show_until_end(looker, command);
  // As a program ends that does not look at signals.
  if (end.signal != 0) std::raise(end.signal);
  if (!end.status) return end.status;
  return CommandOutput{};
}

Result<CommandOutput> run_in_lines(const DaemonSource& daemon, const TopCommand& command) {
  auto before = look_at_jobs(daemon);
  if (!before) return before.status();
  for (uint32_t shown = 0; command.count == 0 || shown < command.count; ++shown) {
    std::this_thread::sleep_for(std::chrono::duration<double>(command.seconds));
    auto after = look_at_jobs(daemon);
    if (!after) return after.status();
    const auto lines = compare_looks(daemon, *before, *after);
    if (!lines) return lines.status();
    const std::string table = jobs_table(*lines) + hidden_line(after->hidden);
    // Nobody reads it any more: that is its end.
    if (std::fputs((table + '\n').c_str(), stdout) < 0 || std::fflush(stdout) != 0) break;
    before = std::move(after);
  }
  return CommandOutput{};
}

}  // namespace

Result<CommandOutput> run_top(const DaemonSource& daemon, const TopCommand& command) {
  return Terminal::is_usable() ? run_on_terminal(daemon, command) : run_in_lines(daemon, command);
}

}  // namespace braid
