// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <thread>

namespace braid {

// Threads that have nothing left to do. Where others have the processor a thread takes milliseconds
// to end, and no loop should wait for that; but all have ended before the process does, since what
// libraries keep for a thread goes with it. Any thread may call both.
void join_later(std::thread thread);
// Waits for those that were handed over so far. A loop does it at its own end.
void join_ended_threads();

}  // namespace braid
