// SPDX-License-Identifier: Apache-2.0
// What every function of NCCL does first and last: it counts, and it keeps what it has to say.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "api.h"
#include "settings.h"

namespace fake_nccl {

enum class Function : std::size_t {
#define FAKE_NCCL_ENUMERATOR(Returned, name, ...) k##name,
  FAKE_NCCL_FUNCTIONS(FAKE_NCCL_ENUMERATOR)
#undef FAKE_NCCL_ENUMERATOR
};

bool is_function(std::string_view name);

/// Counts a call. Returns the result that FAIL sets for it.
std::optional<NcclResult> count_call(Function function);

/// Keeps the text for ncclGetLastError, and returns the result.
NcclResult refuse(NcclResult result, std::string text);
std::string last_refusal();

/// Calls `each` for all threads and functions that were called.
using EachCall = std::function<void(int thread_id, const char* function, std::uint64_t calls)>;
void for_each_call(const EachCall& each);

}  // namespace fake_nccl
