// SPDX-License-Identifier: Apache-2.0
// The part of Status that libbraid has not: it knows no libuv.
#include <uv.h>

#include "base/status.h"

namespace braid {

Status Status::from_uv(int error, std::string_view what) {
  // On Unix libuv's errors are negated errno values, but for a few of its own beyond that range.
  const Status known = from_errno(-error, what);
  if (error == UV_EMFILE || error == UV_ENFILE) return {known.code(), known.message(), error};
  return {known.code(), fmt::format("{}: {}", what, uv_strerror(error)), error};
}

}  // namespace braid
