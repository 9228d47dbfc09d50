// SPDX-License-Identifier: Apache-2.0
#include "net/ucx/ucx_error.h"

#include "base/descriptor_table.h"

namespace braid {
namespace {

StatusCode code_of(ucs_status_t error) {
  switch (error) {
    case UCS_ERR_NO_DEVICE:
    case UCS_ERR_UNREACHABLE:
    case UCS_ERR_CONNECTION_RESET:
    case UCS_ERR_NOT_CONNECTED:
    case UCS_ERR_REJECTED:
    case UCS_ERR_IO_ERROR:
      return StatusCode::Unavailable;
    case UCS_ERR_ENDPOINT_TIMEOUT:
    case UCS_ERR_TIMED_OUT:
      return StatusCode::DeadlineExceeded;
    case UCS_ERR_NO_MEMORY:
    case UCS_ERR_NO_RESOURCE:
      return StatusCode::ResourceExhausted;
    case UCS_ERR_INVALID_PARAM:
    case UCS_ERR_INVALID_ADDR:
      return StatusCode::InvalidArgument;
    case UCS_ERR_CANCELED:
      return StatusCode::Cancelled;
    default:
      return StatusCode::Internal;
  }
}

// What a worker opens, and an endpoint.
constexpr uint32_t kDescriptorsOfWorker = 16;

// UCX says this, among other things, where a call that opens a descriptor has failed.
bool may_lack_descriptors(ucs_status_t error) {
  return error == UCS_ERR_IO_ERROR || error == UCS_ERR_NO_RESOURCE || error == UCS_ERR_NO_MEMORY ||
         error == UCS_ERR_NO_DEVICE || error == UCS_ERR_UNREACHABLE ||
         error == UCS_ERR_INVALID_PARAM;
}

}  // namespace

Status status_from_ucx(ucs_status_t error, std::string_view what) {
  if (may_lack_descriptors(error) && !has_descriptors(kDescriptorsOfWorker)) {
    return {StatusCode::ResourceExhausted,
            fmt::format("{}: {}: this process has no file descriptors left (limit {})", what,
                        ucs_status_string(error), descriptor_limit_text()),
            error};
  }
  return {code_of(error), fmt::format("{}: {}", what, ucs_status_string(error)), error};
}

}  // namespace braid
