// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace braid {

// Has malloc ask the kernel for memory rarely, in large pieces, and keep them. To be called while
// the process has one thread. Each such call (brk, mmap, mprotect) waits for a lock that all
// threads of a process share, and a thread that holds this lock may itself wait for the processor:
// loops stood still for up to 25 ms in malloc. This reserves address space, not memory.
void settle_heap();

}  // namespace braid
