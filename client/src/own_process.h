// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

namespace braid::client {

// The number of this process, without a system call but for the first time, and the first time in a
// forked child. Any thread.
pid_t own_process();

}  // namespace braid::client
