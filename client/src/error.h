// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/status.h"

namespace braid::client {

// The border between Status and braid.h: keeps the message for braid_error_message(), and gives the
// code, which is a braid_error.
int report(const Status& status) noexcept;
int report_out_of_memory() noexcept;
int report_bug(const char* what) noexcept;
const char* last_message() noexcept;

}  // namespace braid::client
