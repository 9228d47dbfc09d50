// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

namespace braid {

// Lets the process have as many descriptors as its hard limit allows. What starts a daemon often
// leaves the soft one at 1,024, for programs that use select().
void raise_descriptor_limit();

// "1024; ulimit -n, or LimitNOFILE in a systemd unit", for messages.
std::string descriptor_limit_text();

// Whether the process can open `wanted` more descriptors now. It opens so many, and closes them.
bool has_descriptors(uint32_t wanted);

// Gives the process's table of descriptors the size that it may need: RLIMIT_NOFILE, and no more
// than 65,536 entries. To be called while the process has one thread. Otherwise the table grows
// when a descriptor is opened that it has no place for (the 65th, the 257th, …), and with several
// threads Linux lets that call wait until all processors have passed through a quiet state: 10 to
// 20 ms, also in eventfd() and accept(). On failure the table is as it was.
void reserve_descriptor_table();

}  // namespace braid
