// SPDX-License-Identifier: Apache-2.0
#include "base/repeated_lines.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "base/log_text.h"

namespace braid {
namespace {

constexpr uint64_t kNoUser = uint64_t{1} << 32;  // beyond all numbers of users
constexpr uint64_t kOtherUsers = kNoUser + 1;
constexpr uint64_t kOtherThings = UINT64_MAX;

}  // namespace

// One with lines that nobody has told of yet stays until take_ended().
void RepeatedLines::forget_ended(Windows& windows, uint64_t now_ns) {
  std::erase_if(windows, [now_ns](const auto& one) {
    return now_ns >= one.second.ends_ns && one.second.held.lines == 0;
  });
}

void RepeatedLines::forget_ended(Users& users, uint64_t now_ns) {
  for (auto& [user, windows] : users) forget_ended(windows, now_ns);
  std::erase_if(users, [](const auto& user) { return user.second.empty(); });
}

RepeatedLines::Window& RepeatedLines::window_of(Users& users, const Subject& subject,
                                                uint64_t now_ns) {
  uint64_t user = subject.user ? *subject.user : kNoUser;
  if (subject.user && users.size() >= kUsersMax && !users.contains(user)) {
    forget_ended(users, now_ns);
    if (users.size() >= kUsersMax) user = kOtherUsers;
  }
  Windows& windows = users[user];
  const size_t things_max = subject.user ? kThingsOfUserMax : kThingsMax;
  uint64_t thing = subject.thing;
  if (windows.size() >= things_max && !windows.contains(thing)) {
    forget_ended(windows, now_ns);
    if (windows.size() >= things_max) thing = kOtherThings;
  }
  return windows[thing];
}

bool RepeatedLines::admit(uint64_t kind, const Subject& subject, int level, std::string_view line,
                          uint64_t now_ns) {
  Window& window = window_of(kinds_[kind], subject, now_ns);
  if (now_ns >= window.ends_ns && window.held.lines == 0)
    window = {now_ns + kWindowSeconds * 1'000'000'000, 0, {}};
  if (window.written < kLinesPerWindow && window.held.lines == 0) {
    ++window.written;
    return true;
  }
  if (window.held.lines++ == 0) {
    first_end_ns_ = holding_ == 0 ? window.ends_ns : std::min(first_end_ns_, window.ends_ns);
    ++holding_;
  }
  window.held.last = cut_text(line, kLastBytesMax);
  window.held.level = std::max(window.held.level, level);
  return false;
}

std::vector<RepeatedLines::Held> RepeatedLines::take_ended(uint64_t now_ns) {
  std::vector<Held> ended;
  if (!has_ended(now_ns)) return ended;
  uint64_t next_ns = UINT64_MAX;
  for (auto& [kind, users] : kinds_) {
    for (auto& [user, windows] : users) {
      for (auto& [thing, window] : windows) {
        if (window.held.lines == 0) continue;
        if (now_ns < window.ends_ns) {
          next_ns = std::min(next_ns, window.ends_ns);
          continue;
        }
        ended.push_back(std::move(window.held));
        window = {};
        --holding_;
      }
    }
    forget_ended(users, now_ns);
  }
  first_end_ns_ = next_ns;
  return ended;
}

std::optional<uint64_t> RepeatedLines::next_end_ns() const {
  if (holding_ == 0) return std::nullopt;
  return first_end_ns_;
}

bool RepeatedLines::has_ended(uint64_t now_ns) const {
  return holding_ != 0 && now_ns >= first_end_ns_;
}

std::string held_text(const RepeatedLines::Held& held) {
  return fmt::format("and {} more lines like this in {} s; the last: {}", grouped(held.lines),
                     RepeatedLines::kWindowSeconds, held.last);
}

}  // namespace braid
