// SPDX-License-Identifier: Apache-2.0
#include "timeline/timeline_files.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <ctime>
#include <filesystem>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/write_file.h"

namespace braid {
namespace {

constexpr size_t kNamePartBytesMax = 64;
constexpr mode_t kFileMode = 0600;
// "-20260131T235959.123Z.json", digits as '0'.
constexpr std::string_view kEndOfNames = "-00000000T000000.000Z.json";
constexpr const char* kUnfinished = ".part";

std::string safe(const std::string& name) {
  std::string text = name.substr(0, kNamePartBytesMax);
  for (char& c : text) {
    const bool is_safe = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                         (c >= '0' && c <= '9') || c == '.' || c == '_' || c == '-';
    if (!is_safe) c = '_';
  }
  // No file is hidden, none is an option.
  if (text.empty() || text.front() == '.' || text.front() == '-') text.insert(0, 1, '_');
  return text;
}

// The end of the name of one of these files, by which they are sorted; empty: it is none of them.
std::string time_in(std::string name) {
  if (name.ends_with(kUnfinished)) name.resize(name.size() - std::string_view(kUnfinished).size());
  if (name.size() < kEndOfNames.size()) return {};
  std::string end = name.substr(name.size() - kEndOfNames.size());
  for (size_t i = 0; i < end.size(); ++i) {
    const bool is_digit = end[i] >= '0' && end[i] <= '9';
    if (kEndOfNames[i] == '0' ? !is_digit : end[i] != kEndOfNames[i]) return {};
  }
  return end;
}

Status failed_to(const char* what, const std::string& path) {
  return Status::from_errno(errno, fmt::format("{}: cannot be {}", path, what));
}

Status write_new(const std::string& path, const std::string& content) {
  const Fd file(
      ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, kFileMode));
  if (!file.is_valid()) return failed_to("written", path);
  for (size_t done = 0; done < content.size();) {
    const ssize_t written = ::write(file.get(), content.data() + done, content.size() - done);
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) {
      Status failure = failed_to("written", path);
      ::unlink(path.c_str());
      return failure;
    }
    done += static_cast<size_t>(written);
  }
  return Status::ok();
}

}  // namespace

bool TimelineFileLimits::take(uint32_t user, const std::string& job, uint64_t now_ns) {
  while (!taken_.empty() && now_ns - taken_.front().at_ns >= kPeriodNs) taken_.pop_front();
  const auto of_user = std::ranges::count(taken_, user, &Taken::user);
  const bool has_one = std::ranges::any_of(
      taken_, [&](const Taken& other) { return other.user == user && other.job == job; });
  if (has_one || static_cast<size_t>(of_user) >= kFilesPerUser || taken_.size() >= kFilesPerPeriod)
    return false;
  taken_.push_back({user, job, now_ns});
  return true;
}

std::string timeline_file_name(const std::string& job, uint32_t epoch, const std::string& node,
                               uint64_t unix_ms) {
  const auto seconds = static_cast<time_t>(unix_ms / 1000);
  std::tm utc{};
  ::gmtime_r(&seconds, &utc);
  return fmt::format("{}-{}-{}-{:04}{:02}{:02}T{:02}{:02}{:02}.{:03}Z.json", safe(job), epoch,
                     safe(node), utc.tm_year + 1900, utc.tm_mon + 1, utc.tm_mday, utc.tm_hour,
                     utc.tm_min, utc.tm_sec, unix_ms % 1000);
}

Result<std::string> TimelineFiles::write(const std::string& name,
                                         const std::string& content) const {
  make_private_folder(directory_);
  const std::string path = (std::filesystem::path(directory_) / name).string();
  const std::string unfinished = path + kUnfinished;
  BRAID_RETURN_IF_ERROR(write_new(unfinished, content));
  if (std::rename(unfinished.c_str(), path.c_str()) != 0) {
    Status failure = failed_to("written", path);
    ::unlink(unfinished.c_str());
    return failure;
  }
  remove_oldest();
  return path;
}

void TimelineFiles::remove_oldest() const {
  std::vector<std::pair<std::string, std::filesystem::path>> files;
  std::error_code error;
  for (std::filesystem::directory_iterator file(directory_, error), end; !error && file != end;
       file.increment(error)) {
    std::string time = time_in(file->path().filename().string());
    std::error_code other_error;
    if (!time.empty() &&
        file->symlink_status(other_error).type() == std::filesystem::file_type::regular)
      files.emplace_back(std::move(time), file->path());
  }
  std::ranges::sort(files);
  for (size_t i = 0; i + kFilesMax < files.size(); ++i)
    std::filesystem::remove(files[i].second, error);
}

}  // namespace braid
