// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "loop/door.h"
#include "loop/loop.h"
#include "loop/timer.h"

namespace braid {

// Tells of the lines that the log holds back (base/log.h) when their time is over, also where no
// other line follows. Its timer runs only while lines are held back. One in a process; made and
// destroyed on its loop, which outlives it.
class HeldLines {
 public:
  explicit HeldLines(Loop& loop);
  ~HeldLines();
  HeldLines(const HeldLines&) = delete;
  HeldLines& operator=(const HeldLines&) = delete;

 private:
  struct FirstHeld {};
  void tell();

  Timer timer_;
  Door<FirstHeld> door_;
};

}  // namespace braid
