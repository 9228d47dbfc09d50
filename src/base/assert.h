// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace braid {

[[noreturn]] void assertion_failed(const char* condition, const char* message, const char* file,
                                   int line);

}  // namespace braid

// For what only a bug in braid can break. Always on: a daemon that goes on with broken state
// corrupts gradients.
#define BRAID_ASSERT(condition, message) \
  (static_cast<bool>(condition)          \
       ? static_cast<void>(0)            \
       : ::braid::assertion_failed(#condition, message, __FILE__, __LINE__))
