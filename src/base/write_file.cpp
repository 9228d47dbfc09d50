// SPDX-License-Identifier: Apache-2.0
#include "base/write_file.h"

#include <cerrno>
#include <cstdio>
#include <memory>

namespace braid {
namespace {

struct CloseFile {
  void operator()(std::FILE* file) const { (void)std::fclose(file); }
};

Status failed(const std::string& path) {
  return Status::from_errno(errno, fmt::format("{}: cannot be written", path));
}

}  // namespace

Status write_file(const std::string& path, const std::string& content) {
  std::unique_ptr<std::FILE, CloseFile> file(std::fopen(path.c_str(), "we"));
  if (file == nullptr) return failed(path);
  const size_t written = std::fwrite(content.data(), 1, content.size(), file.get());
  if (written != content.size()) return failed(path);
  // What a full disk does not take may show only here.
  if (std::fclose(file.release()) != 0) return failed(path);
  return Status::ok();
}

}  // namespace braid
