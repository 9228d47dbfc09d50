// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace braid {

// Which lines of a log are written, and which are only counted: of those of one kind (their place
// in the code) and one subject (whom and what they are about), kLinesPerWindow in each window. A
// window begins with the first line that comes when none is open. What one user does takes no
// other user's windows: of each kind a user has kThingsOfUserMax for things of his, and further
// things of his share one. Lines that are about no user have kThingsMax, and one to share. More
// users than kUsersMax at a time share windows as if they were one. Not thread-safe; `now_ns` is a
// clock that never goes back.
class RepeatedLines {
 public:
  static constexpr uint32_t kLinesPerWindow = 20;
  static constexpr uint64_t kWindowSeconds = 10;
  static constexpr size_t kLastBytesMax = 512;
  static constexpr size_t kThingsOfUserMax = 16;
  static constexpr size_t kThingsMax = 64;
  static constexpr size_t kUsersMax = 1024;

  struct Subject {
    std::optional<uint32_t> user{};
    uint64_t thing = 0;  // a hash: of a job, a peer; 0: none
  };

  // What is to be told of a window that is over.
  struct Held {
    uint64_t lines = 0;
    std::string last;  // the text of the last one, at most kLastBytesMax
    int level = 0;     // the highest
  };

  // Whether the line may be written; else it is counted. `level`: higher ones matter more.
  bool admit(uint64_t kind, const Subject& subject, int level, std::string_view line,
             uint64_t now_ns);
  // The lines held back in all windows that have ended by now; these windows are closed.
  std::vector<Held> take_ended(uint64_t now_ns);
  // When the first window ends in which lines were held back; nothing: there is none.
  std::optional<uint64_t> next_end_ns() const;
  bool has_ended(uint64_t now_ns) const;  // take_ended() would give something

 private:
  struct Window {
    uint64_t ends_ns = 0;
    uint32_t written = 0;
    Held held;
  };
  using Windows = std::unordered_map<uint64_t, Window>;  // by thing
  using Users = std::unordered_map<uint64_t, Windows>;   // by user, and of what is about none

  static Window& window_of(Users& users, const Subject& subject, uint64_t now_ns);
  static void forget_ended(Windows& windows, uint64_t now_ns);
  static void forget_ended(Users& users, uint64_t now_ns);

  // By kind. There are as many as places in the code that log.
  std::unordered_map<uint64_t, Users> kinds_;
  size_t holding_ = 0;         // windows in which lines were held back
  uint64_t first_end_ns_ = 0;  // not later than the first of these ends
};

// "and 1,234 more lines like this in 10 s; the last: …"
std::string held_text(const RepeatedLines::Held& held);

}  // namespace braid
