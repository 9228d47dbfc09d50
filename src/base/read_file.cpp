// SPDX-License-Identifier: Apache-2.0
#include "base/read_file.h"

#include <array>
#include <cerrno>

#include <fcntl.h>

#include "base/fd.h"

namespace braid {

Result<std::string> read_file(const std::string& path, size_t bytes_max, struct stat* info) {
  // To open a FIFO waits for its writer.
  const int no_wait = info != nullptr ? O_NONBLOCK : 0;
  const Fd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | no_wait));
  if (!fd.is_valid()) return Status::from_errno(errno, fmt::format("{}: cannot be opened", path));
  if (info != nullptr && ::fstat(fd.get(), info) != 0) {
    return Status::from_errno(errno, fmt::format("{}: cannot be examined", path));
  }
  std::string content;
  std::array<char, 4096> buffer;
  for (;;) {
    const ssize_t count = ::read(fd.get(), buffer.data(), buffer.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return Status::from_errno(errno, fmt::format("{}: cannot be read", path));
    if (count == 0) return content;
    content.append(buffer.data(), static_cast<size_t>(count));
    if (content.size() > bytes_max) {
      return make_status(StatusCode::InvalidArgument, "{}: is larger than {} bytes", path,
                         bytes_max);
    }
  }
}

}  // namespace braid
