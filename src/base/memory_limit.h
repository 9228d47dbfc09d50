// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

namespace braid {

// Bytes of memory that this process may have at most: the machine's, or less where a control group
// of this process (MemoryMax in systemd, a container's limit) says so. What cannot be read is no
// limit; UINT64_MAX: none is known. `root`: where /proc and /sys are, for tests.
uint64_t memory_limit(const std::string& root = "");

// Bytes of shared memory that count as this process's control group's, or as the machine's where
// that does not say.
uint64_t shared_memory_used(const std::string& root = "");

}  // namespace braid
