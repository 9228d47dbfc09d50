// SPDX-License-Identifier: Apache-2.0
#include "job_request.h"

#include <charconv>
#include <cstdlib>
#include <cstring>

#include "connection.h"
#include "options.h"
#include "proto/types.h"

namespace braid::client {
namespace {

constexpr uint32_t kDefaultTimeoutMs = 300'000;
constexpr uint64_t kDefaultArenaBytes = 16ull << 30;
constexpr uint64_t kArenaBytesMax = 1ull << 46;
constexpr uint32_t kWorldSizeMax = 65536;
constexpr size_t kNameBytesMax = 255;
constexpr size_t kTokenBytesMax = 255;

Status read_text(const char* given, const char* field, std::string& text) {
  const size_t length = given == nullptr ? 0 : ::strnlen(given, kNameBytesMax + 1);
  if (length == 0 || length > kNameBytesMax) {
    return make_status(StatusCode::InvalidArgument, "{}{}; it must have 1 to {} bytes", field,
                       given == nullptr ? " is NULL" : " has the wrong length", kNameBytesMax);
  }
  text = given;
  return {};
}

Status check(const braid_job_options& options) {
  if (options.world_size == 0 || options.world_size > kWorldSizeMax) {
    return make_status(StatusCode::InvalidArgument, "world_size is {}; 1 to {} are possible",
                       options.world_size, kWorldSizeMax);
  }
  if (options.rank >= options.world_size) {
    return make_status(StatusCode::InvalidArgument,
                       "rank is {}; with world_size {} ranks are 0 to {}", options.rank,
                       options.world_size, options.world_size - 1);
  }
  if (options.arena_bytes > kArenaBytesMax) {
    return make_status(StatusCode::InvalidArgument, "arena_bytes is {}; at most {} are possible",
                       options.arena_bytes, kArenaBytesMax);
  }
  return {};
}

Status read_weight(uint32_t& weight) {
  const char* given = std::getenv("BRAID_JOB_WEIGHT");
  const std::string_view text = given == nullptr ? "" : given;
  if (text.empty()) return {};
  const char* end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, weight);
  if (error == std::errc() && rest == end && weight >= 1 && weight <= kJobWeightMax) return {};
  return make_status(StatusCode::InvalidArgument,
                     "BRAID_JOB_WEIGHT is '{}'; a job's weight is a whole number from 1 to {}",
                     text, kJobWeightMax);
}

// The job's secret: as given, else from the environment.
Status read_token(const braid_job_options& options, std::string& token) {
  const bool is_given = options.token != nullptr && *options.token != '\0';
  const char* text = is_given ? options.token : std::getenv("BRAID_JOB_TOKEN");
  token = text == nullptr ? "" : std::string(text, ::strnlen(text, kTokenBytesMax + 1));
  if (token.size() <= kTokenBytesMax) return {};
  // The token itself is nobody's to read, in no log.
  return make_status(StatusCode::InvalidArgument,
                     "{} is too long; a job's token has {} bytes at most",
                     is_given ? "token" : "BRAID_JOB_TOKEN", kTokenBytesMax);
}

}  // namespace

Status read_job_request(const braid_job_options* options, JobRequest& request) {
  braid_job_options given{};
  BRAID_RETURN_IF_ERROR(read_options(options, "braid_job_options", given));
  BRAID_RETURN_IF_ERROR(read_text(given.name, "name", request.name));
  BRAID_RETURN_IF_ERROR(read_text(given.master_address, "master_address", request.master_address));
  BRAID_RETURN_IF_ERROR(check(given));
  BRAID_RETURN_IF_ERROR(read_weight(request.weight));
  BRAID_RETURN_IF_ERROR(read_token(given, request.token));
  request.rank = {given.rank, given.world_size};
  request.socket_path = socket_path_of(given.socket_path);
  request.master_node = given.master_node;
  request.timeout_ms = given.timeout_ms != 0 ? given.timeout_ms : kDefaultTimeoutMs;
  request.arena_bytes = given.arena_bytes != 0 ? given.arena_bytes : kDefaultArenaBytes;
  return {};
}

}  // namespace braid::client
