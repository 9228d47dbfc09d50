// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <signal.h>
#include <termios.h>

#include "base/fd.h"
#include "base/status.h"

namespace braid {

// A whole-screen program's terminal: standard input and output. While it exists, the alternate
// screen is shown, keys come one by one without echo, and signals that end or stop a program are
// taken here: the terminal is as it was when the object is gone, also after SIGINT, SIGTERM, SIGHUP
// and SIGQUIT, and while the program is stopped (SIGTSTP). One at a time; one thread, and no other
// may exist when it is made, so that none takes the signals.
class Terminal {
 public:
  // Standard input and output are a terminal that can move its cursor.
  static bool is_usable();
  // Unavailable: is_usable() does not hold, or the kernel refuses.
  static Result<std::unique_ptr<Terminal>> open();
  Terminal(const Terminal&) = delete;
  Terminal& operator=(const Terminal&) = delete;
  ~Terminal();

  enum class Key : uint8_t { Character, Up, Down, PageUp, PageDown, Enter, Escape };
  struct Event {
    enum class Kind : uint8_t {
      Key,
      Resized,  // also after the program was stopped: all is to be drawn anew
      Ended,    // by `signal`, or (0) because nobody types any more
      Woken,    // `also` can be read
      Timeout
    };
    Kind kind = Kind::Timeout;
    Key key = Key::Character;
    char character = 0;
    int signal = 0;
  };
  // Until something happens, or `deadline`. `also`: a further descriptor to wait for; -1: none.
  Event wait(std::chrono::steady_clock::time_point deadline, int also);

  struct Size {
    size_t rows = 24;
    size_t columns = 80;
  };
  Size size() const;
  // Shows these lines from the top on; they fit size(), but for escapes. False: nobody sees it.
  bool draw(const std::vector<std::string>& lines);

 private:
  Terminal() = default;
  bool enter();
  void leave();
  std::optional<Event> next_key();
  Event take_signal();
  void stop();

  termios usual_{};
  sigset_t usual_mask_{};
  Fd signals_;
  std::string typed_;  // and not taken yet
  bool is_entered_ = false;
};

}  // namespace braid
