// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "connection.h"

namespace braid::client {

// Whether the daemon still answers, for who waits for it: one that is stopped, or that hangs, keeps
// its sockets open and says nothing. When nothing has come for a while it is asked, by a connection
// of its own on which it only has to shake hands. A daemon that is merely busy does that, and so
// does one whose job waits for other ranks. One thread at a time; no call blocks.
class DaemonWatch {
 public:
  struct Times {
    uint64_t quiet_ns = 10'000'000'000;   // without a word; then it is asked
    uint64_t answer_ns = 10'000'000'000;  // that it has for an answer; the handshake's 10 s at most
    uint64_t gap_ns = 3'000'000'000;      // without look(): nobody has waited, or we were stopped
  };
  // What a look has found out.
  enum class News : uint8_t { None, Silent, Answers };

  DaemonWatch() = default;
  explicit DaemonWatch(const Times& times) : times_(times) {}

  // Something has come from the daemon.
  void on_heard() { has_heard_ = true; }
  // To be called at least once a second while somebody waits. `path`: the daemon's socket. Each
  // silence is news once, and so is its end.
  News look(const std::string& path, uint64_t now_ns);
  // For how long it has not said anything. 0: it answers, for all that is known.
  uint64_t silent_ns(uint64_t now_ns) const { return is_silent_ ? now_ns - heard_ns_ : 0; }

 private:
  News on_answer(uint64_t now_ns);

  Times times_;
  bool has_heard_ = true;
  bool is_silent_ = false;
  uint64_t heard_ns_ = 0;  // or the wait began
  uint64_t looked_ns_ = 0;
  uint64_t ask_ns_ = 0;  // when it is asked next
  std::optional<Connection> question_;
};

}  // namespace braid::client
