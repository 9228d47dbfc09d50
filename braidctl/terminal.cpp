// SPDX-License-Identifier: Apache-2.0
#include "braidctl/terminal.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <memory>
#include <string_view>
#include <utility>

#include <poll.h>
#include <sys/ioctl.h>
#include <sys/signalfd.h>
#include <unistd.h>

namespace braid {
namespace {

// The alternate screen, without a cursor and without wrapping long lines.
constexpr std::string_view kEnterScreen = "\x1b[?1049h\x1b[?25l\x1b[?7l";
constexpr std::string_view kLeaveScreen = "\x1b[?7h\x1b[?25h\x1b[?1049l";
constexpr std::string_view kHome = "\x1b[H";
constexpr std::string_view kEndOfLine = "\x1b[K";
constexpr std::string_view kRestOfScreen = "\x1b[J";
constexpr char kEscape = '\x1b';
// So long after an escape comes the rest of an arrow key, if it was one.
constexpr int kRestOfKeyMs = 50;
constexpr std::array kSignals = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGTSTP, SIGWINCH};

struct KeySequence {
  std::string_view text;  // after the escape
  Terminal::Key key;
};
constexpr std::array<KeySequence, 6> kKeySequences = {{{"[A", Terminal::Key::Up},
                                                       {"[B", Terminal::Key::Down},
                                                       {"OA", Terminal::Key::Up},
                                                       {"OB", Terminal::Key::Down},
                                                       {"[5~", Terminal::Key::PageUp},
                                                       {"[6~", Terminal::Key::PageDown}}};

bool write_all(std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = ::write(STDOUT_FILENO, text.data(), text.size());
    if (written >= 0) {
      text.remove_prefix(static_cast<size_t>(written));
      continue;
    }
    if (errno == EAGAIN) {
      pollfd wanted{STDOUT_FILENO, POLLOUT, 0};
      ::poll(&wanted, 1, -1);
    } else if (errno != EINTR) {
      return false;
    }
  }
  return true;
}

int milliseconds_until(std::chrono::steady_clock::time_point deadline) {
  const auto left =
      std::chrono::ceil<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now());
  return static_cast<int>(std::clamp<int64_t>(left.count(), 0, 60'000));
}

}  // namespace

bool Terminal::is_usable() {
  const char* kind = std::getenv("TERM");
  return ::isatty(STDIN_FILENO) == 1 && ::isatty(STDOUT_FILENO) == 1 && kind != nullptr &&
         std::string_view(kind) != "dumb" && !std::string_view(kind).empty();
}

Result<std::unique_ptr<Terminal>> Terminal::open() {
  if (!is_usable()) return Status(StatusCode::Unavailable, "there is no terminal");
  std::unique_ptr<Terminal> terminal(new Terminal);
  if (::tcgetattr(STDIN_FILENO, &terminal->usual_) != 0)
    return Status::from_errno(errno, "the terminal does not say how it is set");
  sigset_t taken;
  ::sigemptyset(&taken);
  for (const int signal : kSignals) ::sigaddset(&taken, signal);
  ::pthread_sigmask(SIG_BLOCK, &taken, &terminal->usual_mask_);
  terminal->signals_ = Fd(::signalfd(-1, &taken, SFD_CLOEXEC | SFD_NONBLOCK));
  if (!terminal->signals_.is_valid() || !terminal->enter())
    return Status::from_errno(errno, "the terminal cannot be used");
  return terminal;
}

Terminal::~Terminal() {
  leave();
  ::pthread_sigmask(SIG_SETMASK, &usual_mask_, nullptr);
}

bool Terminal::enter() {
  termios raw = usual_;
  // Keys one by one and unseen; ^C and ^Z stay signals.
  raw.c_lflag &= ~static_cast<tcflag_t>(ICANON | ECHO);
  raw.c_cc[VMIN] = 1;
  raw.c_cc[VTIME] = 0;
  is_entered_ = true;
  return ::tcsetattr(STDIN_FILENO, TCSADRAIN, &raw) == 0 && write_all(kEnterScreen);
}

void Terminal::leave() {
  if (!std::exchange(is_entered_, false)) return;
  (void)write_all(kLeaveScreen);
  ::tcsetattr(STDIN_FILENO, TCSADRAIN, &usual_);
}

Terminal::Event Terminal::wait(std::chrono::steady_clock::time_point deadline, int also) {
  while (true) {
    if (const auto key = next_key()) return *key;
    std::array<pollfd, 3> wanted = {
        {{signals_.get(), POLLIN, 0}, {STDIN_FILENO, POLLIN, 0}, {also, POLLIN, 0}}};
    const int ready = ::poll(wanted.data(), wanted.size(), milliseconds_until(deadline));
    if (ready < 0 && errno != EINTR) return {.kind = Event::Kind::Ended};
    if (ready <= 0) {
      if (std::chrono::steady_clock::now() >= deadline) return {};
      continue;
    }
    if (wanted[0].revents != 0) return take_signal();
    if (wanted[1].revents != 0) {
      std::array<char, 64> typed{};
      const ssize_t bytes = ::read(STDIN_FILENO, typed.data(), typed.size());
      if (bytes == 0 || (bytes < 0 && errno != EAGAIN && errno != EINTR))
        return {.kind = Event::Kind::Ended};
      if (bytes > 0) typed_.append(typed.data(), static_cast<size_t>(bytes));
      continue;
    }
    return {.kind = Event::Kind::Woken};
  }
}

std::optional<Terminal::Event> Terminal::next_key() {
  if (typed_.empty()) return std::nullopt;
  const auto take = [this](size_t bytes, Key key, char character) {
    typed_.erase(0, bytes);
    return Event{.kind = Event::Kind::Key, .key = key, .character = character};
  };
  const char first = typed_.front();
  if (first == '\r' || first == '\n') return take(1, Key::Enter, 0);
  if (first != kEscape) return take(1, Key::Character, first);
  if (typed_.size() < 3) {
    pollfd more{STDIN_FILENO, POLLIN, 0};
    std::array<char, 16> rest{};
    if (::poll(&more, 1, kRestOfKeyMs) > 0) {
      const ssize_t bytes = ::read(STDIN_FILENO, rest.data(), rest.size());
      if (bytes > 0) typed_.append(rest.data(), static_cast<size_t>(bytes));
    }
  }
  for (const KeySequence& sequence : kKeySequences) {
    if (std::string_view(typed_).substr(1).starts_with(sequence.text))
      return take(1 + sequence.text.size(), sequence.key, 0);
  }
  return take(1, Key::Escape, 0);
}

Terminal::Event Terminal::take_signal() {
  signalfd_siginfo signal{};
  if (::read(signals_.get(), &signal, sizeof(signal)) != sizeof(signal)) return {};
  const int number = static_cast<int>(signal.ssi_signo);
  if (number == SIGTSTP) stop();
  if (number == SIGTSTP || number == SIGWINCH) return {.kind = Event::Kind::Resized};
  return {.kind = Event::Kind::Ended, .signal = number};
}

void Terminal::stop() {
  leave();
  ::raise(SIGSTOP);  // until SIGCONT
  (void)enter();
}

Terminal::Size Terminal::size() const {
  winsize window{};
  if (::ioctl(STDOUT_FILENO, TIOCGWINSZ, &window) != 0 || window.ws_row == 0 || window.ws_col == 0)
    return {};
  return {window.ws_row, window.ws_col};
}

bool Terminal::draw(const std::vector<std::string>& lines) {
  std::string text(kHome);
  for (size_t i = 0; i < lines.size(); ++i) {
    if (i != 0) text += "\r\n";
    text += lines[i];
    text += kEndOfLine;
  }
  return write_all(text += kRestOfScreen);
}

}  // namespace braid
