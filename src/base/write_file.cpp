// SPDX-License-Identifier: Apache-2.0
#include "base/write_file.h"

#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <memory>

#include <fcntl.h>
#include <sys/stat.h>

#include "base/fd.h"

namespace braid {
namespace {

struct CloseFile {
  void operator()(std::FILE* file) const { (void)std::fclose(file); }
};

Status failed(const std::string& path) {
  return Status::from_errno(errno, fmt::format("{}: cannot be written", path));
}

}  // namespace

Status write_file(const std::string& path, const std::string& content, FileReaders readers) {
  const bool is_private = readers == FileReaders::Owner;
  Fd opened(::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC,
                   is_private ? S_IRUSR | S_IWUSR : 0666));
  // One that was there keeps its mode otherwise.
  if (!opened.is_valid() || (is_private && ::fchmod(opened.get(), S_IRUSR | S_IWUSR) != 0))
    return failed(path);
  std::unique_ptr<std::FILE, CloseFile> file(::fdopen(opened.get(), "w"));
  if (file == nullptr) return failed(path);
  (void)opened.release();
  const size_t written = std::fwrite(content.data(), 1, content.size(), file.get());
  if (written != content.size()) return failed(path);
  // What a full disk does not take may show only here.
  if (std::fclose(file.release()) != 0) return failed(path);
  return Status::ok();
}

void make_private_folder(const std::string& path) {
  std::filesystem::path made;
  for (const std::filesystem::path& part : std::filesystem::path(path)) {
    made /= part;
    (void)::mkdir(made.c_str(), S_IRWXU);
  }
}

}  // namespace braid
