// SPDX-License-Identifier: Apache-2.0
#include "job/open_request.h"

#include <span>

#include "coordinator/coordinator.h"
#include "engine/transfer_settings.h"

namespace braid {
namespace {

uint32_t weight_of(const proto::OpenJob& open) { return open.weight() == 0 ? 1 : open.weight(); }

std::span<const uint8_t> token_of(const proto::OpenJob& open) {
  if (open.token() == nullptr) return {};
  return {open.token()->data(), open.token()->size()};
}

// Ok, or what in it makes no sense.
Status check_open(const proto::OpenJob& open) {
  BRAID_RETURN_IF_ERROR(check_job_name(open.name()->string_view()));
  if (open.world_size() == 0 || open.world_size() > Coordinator::kWorldSizeMax ||
      open.rank() >= open.world_size()) {
    return make_status(
        StatusCode::InvalidArgument,
        "rank {} of world size {}: the world size must be 1 to {} and the rank below it",
        open.rank(), open.world_size(), Coordinator::kWorldSizeMax);
  }
  if (const size_t bytes = token_of(open).size(); bytes > kJobTokenBytesMax) {
    return make_status(StatusCode::InvalidArgument,
                       "a job's token has {} bytes at most (BRAID_JOB_TOKEN), not {}",
                       kJobTokenBytesMax, bytes);
  }
  if (const size_t bytes = open.master_address()->size(); bytes > OpenRequest::kAddressBytesMax) {
    return make_status(StatusCode::InvalidArgument,
                       "a job's master address has {} bytes at most, not {}",
                       OpenRequest::kAddressBytesMax, bytes);
  }
  if (open.master_address()->size() == 0 || open.timeout_ms() == 0) {
    return Status(StatusCode::InvalidArgument,
                  "a job needs a master address and a timeout above 0");
  }
  const uint32_t weight = weight_of(open);
  if (weight > kJobWeightMax) {
    return make_status(StatusCode::InvalidArgument,
                       "BRAID_JOB_WEIGHT is {}; a job's weight is 1 to {}", weight, kJobWeightMax);
  }
  return Status::ok();
}

}  // namespace

Status check_job_name(std::string_view name) {
  if (!name.empty() && name.size() <= OpenRequest::kJobNameBytesMax) return Status::ok();
  return make_status(StatusCode::InvalidArgument, "a job's name has 1 to {} bytes, not {}",
                     OpenRequest::kJobNameBytesMax, name.size());
}

Result<OpenRequest> parse_open_job(const proto::OpenJob& open, uid_t user) {
  BRAID_RETURN_IF_ERROR(check_open(open));
  OpenRequest request;
  request.identity.name = open.name()->str();
  request.identity.owner = job_owner(request.identity.name, token_of(open), user);
  request.has_token = !token_of(open).empty();
  request.master_address = open.master_address()->str();
  request.master_node = open.master_node();
  request.rank = open.rank();
  request.world_size = open.world_size();
  request.timeout_ms = open.timeout_ms();
  request.weight = weight_of(open);
  request.done_capacity = open.done_capacity();
  return request;
}

}  // namespace braid
