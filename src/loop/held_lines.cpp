// SPDX-License-Identifier: Apache-2.0
#include "loop/held_lines.h"

#include "base/log.h"

namespace braid {

HeldLines::HeldLines(Loop& loop) : timer_(loop), door_(loop, 1, [this](FirstHeld&) { tell(); }) {
  // Where one waits in the door already, nothing is lost when the next one is not taken.
  set_held_lines_callback([this] { (void)door_.send({}); });
}

HeldLines::~HeldLines() {
  set_held_lines_callback(nullptr);
  tell_all_held_lines();
}

void HeldLines::tell() {
  if (const auto next_ms = tell_held_lines()) timer_.start_once(*next_ms, [this] { tell(); });
}

}  // namespace braid
