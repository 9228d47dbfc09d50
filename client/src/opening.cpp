// SPDX-License-Identifier: Apache-2.0
#include "opening.h"

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <utility>
#include <vector>

#include "options.h"
#include "proto/types.h"

namespace braid::client {
namespace {

constexpr uint32_t kDefaultTimeoutMs = 300'000;
constexpr uint64_t kDefaultArenaBytes = 16ull << 30;
constexpr uint64_t kResultBytesMax = 1ull << 46;
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

Opening::Opening(JobRequest request, Session& session, Arenas& arenas)
    : request_(std::move(request)),
      session_(session),
      arenas_(arenas),
      connect_deadline_ns_(now_ns() + request_.timeout_ms * 1'000'000ull) {}

Status Opening::begin() {
  return session_.connection().begin(request_.socket_path, connect_deadline_ns_);
}

Status Opening::advance(uint64_t until_ns, std::optional<Opened>& opened) {
  if (error_.is_ok()) error_ = go_on(until_ns, opened);
  return error_;
}

Status Opening::go_on(uint64_t until_ns, std::optional<Opened>& opened) {
  if (!is_asked_) {
    // First the daemon: without one there is no need for memory.
    bool is_connected = false;
    BRAID_RETURN_IF_ERROR(session_.connection().advance(until_ns, is_connected));
    if (!is_connected) return {};
    BRAID_RETURN_IF_ERROR(session_.create_rings());
    BRAID_RETURN_IF_ERROR(ask());
    is_asked_ = true;
  }
  return await_answer(until_ns, opened);
}

Status Opening::ask() {
  const std::vector<uint8_t> token_bytes(request_.token.begin(), request_.token.end());
  std::unique_ptr<Arena> arena;
  BRAID_RETURN_IF_ERROR(arenas_.make(0, arena));
  flatbuffers::FlatBufferBuilder builder;
  const auto open = proto::CreateOpenJobDirect(
      builder, request_.name.c_str(), request_.rank.rank, request_.rank.world_size,
      request_.master_address.c_str(), request_.timeout_ms, arena->size(), Session::kSubmitCapacity,
      Session::kDoneCapacity, request_.weight, &token_bytes, request_.master_node);
  const int fds[] = {arena->fd(), session_.rings_fd(), session_.submit_wake_fd()};
  asked_ = session_.connection().send(builder, open, fds);
  arenas_.add(std::move(arena));
  // A daemon that is gone may have said why; await_answer() reads that. Else it was not asked.
  return asked_.code() == StatusCode::Unavailable ? Status() : asked_;
}

// The daemon's answer, or nothing by `until_ns`.
Status Opening::await_answer(uint64_t until_ns, std::optional<Opened>& opened) {
  const uint64_t deadline_ns = connect_deadline_ns_ + kDaemonGraceNs;
  Received received;
  Status answered = session_.connection().receive_until(std::min(until_ns, deadline_ns), received);
  if (answered.code() == StatusCode::DeadlineExceeded) {
    if (now_ns() < deadline_ns) return {};
    return make_status(answered.code(), "{}: job '{}' was neither opened nor refused within {} ms",
                       answered.message(), request_.name, request_.timeout_ms);
  }
  if (!answered) return asked_.is_ok() ? answered : asked_;
  Opened accepted;
  BRAID_RETURN_IF_ERROR(accept(std::move(received), accepted));
  opened = std::move(accepted);
  return {};
}

Status Opening::accept(Received received, Opened& opened) {
  if (const auto* failure = received.message->body_as_Failure())
    return daemon_error(failure->code(), failure->text());
  const auto refuse = [&](const std::string& what) {
    return make_status(StatusCode::Protocol, "braidd at '{}' answered OpenJob with {}",
                       session_.socket_path(), what);
  };
  const proto::JobOpened* answer = received.message->body_as_JobOpened();
  if (answer == nullptr) return refuse(proto::EnumNameClientBody(received.message->body_type()));
  std::vector<Fd>& fds = received.frame.fds;
  if (fds.size() != 2) {
    return refuse(fmt::format(
        "{} descriptors instead of the result memory's and the done ring's wake-up's", fds.size()));
  }
  auto blocks = RankBlocks::of({answer->block_of_rank()->begin(), answer->block_of_rank()->end()},
                               request_.rank.world_size);
  if (!blocks) return refuse("blocks that are no permutation of the ranks");
  auto results = SharedMemory::adopt(std::move(fds[0]), answer->result_bytes(), kResultBytesMax,
                                     SharedMemory::Access::ReadOnly, "result memory");
  if (!results) return results.status();
  if (answer->polling() > static_cast<uint8_t>(PollingMode::Always)) {
    return refuse(fmt::format("a way of waiting (polling {}) unknown here", answer->polling()));
  }
  session_.set_polling(static_cast<PollingMode>(answer->polling()));
  session_.set_done_wake(std::move(fds[1]));
  opened = {std::move(*results), std::move(*blocks), answer->takes_work(), answer->nodes(),
            answer->takes_messages()};
  return {};
}

}  // namespace braid::client
