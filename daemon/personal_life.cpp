// SPDX-License-Identifier: Apache-2.0
#include "daemon/personal_life.h"

#include <cerrno>
#include <cstdio>
#include <utility>

#include <fcntl.h>
#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/log.h"
#include "base/read_file.h"
#include "base/version.h"
#include "base/write_file.h"
#include "config/personal.h"

namespace braid {
namespace {

constexpr size_t kNewsBytesMax = 64 << 10;

std::string in_folder(const std::string& folder, const char* name) { return folder + '/' + name; }

std::string page_url(uint16_t port) { return fmt::format("http://localhost:{}/", port); }

// Complete from the first moment that it is there.
Status write_news(const std::string& folder, const std::string& text) {
  const std::string path = in_folder(folder, kPersonalNews);
  const std::string nascent = fmt::format("{}.{}", path, ::getpid());
  BRAID_RETURN_IF_ERROR(write_file(nascent, text, FileReaders::Owner));
  if (::rename(nascent.c_str(), path.c_str()) == 0) return Status::ok();
  Status failed = Status::from_errno(errno, fmt::format("{}: cannot be written", path));
  ::unlink(nascent.c_str());
  return failed;
}

}  // namespace

std::string to_json(const PersonalNews& news) {
  nlohmann::ordered_json json = {{"version", kBraidVersion},
                                 {"pid", news.process},
                                 {"node", news.node},
                                 {"socket", news.socket},
                                 {"address", news.address}};
  if (news.control_port) json["control_port"] = *news.control_port;
  if (news.page_port) json["page"] = page_url(*news.page_port);
  return json.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + '\n';
}

Status name_first_daemon(const Status& error, const std::string& folder) {
  if (error.code() != StatusCode::AlreadyExists) return error;
  const auto text = read_file(in_folder(folder, kPersonalNews), kNewsBytesMax);
  if (!text) return error;
  const auto json = nlohmann::json::parse(*text, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object() || !json.contains("pid")) return error;
  std::string said = fmt::format("your personal braidd runs already: process {}, socket {}/{}",
                                 json["pid"].dump(), folder, kPersonalSocket);
  if (json.contains("page") && json["page"].is_string())
    said += ", page " + json["page"].get<std::string>();
  return {error.code(), said};
}

Result<std::unique_ptr<PersonalLife>> PersonalLife::create(Loop& loop, const Clock& clock,
                                                           Options options,
                                                           const PersonalNews& news) {
  const std::string path = in_folder(options.folder, kPersonalLock);
  Fd lock(::open(path.c_str(), O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, S_IRUSR | S_IWUSR));
  if (!lock.is_valid()) return Status::from_errno(errno, fmt::format("{}: cannot be opened", path));
  std::unique_ptr<PersonalLife> life(
      new PersonalLife(loop, clock, std::move(options), std::move(lock)));
  BRAID_RETURN_IF_ERROR(write_news(life->options_.folder, to_json(news)));
  return life;
}

PersonalLife::PersonalLife(Loop& loop, const Clock& clock, Options options, Fd lock)
    : clock_(clock),
      options_(std::move(options)),
      lock_(std::move(lock)),
      used_at_ms_(clock.now_ms()),
      timer_(loop) {
  timer_.start_repeating(kLookMs, [this] { look(); });
}

PersonalLife::~PersonalLife() {
  for (const char* name : {kPersonalNews, kPersonalKey, kPersonalLog, kPersonalLock})
    ::unlink(in_folder(options_.folder, name).c_str());
  (void)::rmdir(options_.folder.c_str());
  if (!options_.folder_above.empty()) (void)::rmdir(options_.folder_above.c_str());
}

void PersonalLife::look() {
  if (is_over_) return;
  // While the lock is ours, nobody begins to use the daemon.
  const Use use = options_.use();
  const bool is_used = use.present != 0 || use.heard != heard_ || !take_lock();
  heard_ = use.heard;
  const uint64_t now_ms = clock_.now_ms();
  if (is_used) {
    was_used_ = true;
    used_at_ms_ = now_ms;
    return;
  }
  if (now_ms - used_at_ms_ < (was_used_ ? kIdleMs : kFirstUseMs)) {
    (void)::flock(lock_.get(), LOCK_UN);
    return;
  }
  is_over_ = true;
  timer_.stop();
  BRAID_LOG_INFO("nobody uses this personal daemon {}: it ends",
                 was_used_ ? "any more" : "and nobody has");
  options_.end();
}

bool PersonalLife::take_lock() { return ::flock(lock_.get(), LOCK_EX | LOCK_NB) == 0; }

}  // namespace braid
