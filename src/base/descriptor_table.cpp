// SPDX-License-Identifier: Apache-2.0
#include "base/descriptor_table.h"

#include <algorithm>
#include <vector>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/fd.h"

namespace braid {

void raise_descriptor_limit() {
  rlimit files{};
  if (::getrlimit(RLIMIT_NOFILE, &files) != 0) return;
  files.rlim_cur = files.rlim_max;
  // A machine whose fs.nr_open is lower refuses; then it stays as it was.
  (void)::setrlimit(RLIMIT_NOFILE, &files);
}

std::string descriptor_limit_text() {
  rlimit files{};
  const bool is_known = ::getrlimit(RLIMIT_NOFILE, &files) == 0;
  return fmt::format("{}; ulimit -n, or LimitNOFILE in a systemd unit",
                     is_known ? fmt::to_string(files.rlim_cur) : "not known");
}

bool has_descriptors(uint32_t wanted) {
  std::vector<Fd> opened;
  while (opened.size() < wanted) {
    Fd one(opened.empty() ? ::eventfd(0, EFD_CLOEXEC)
                          : ::fcntl(opened.front().get(), F_DUPFD_CLOEXEC, 0));
    if (!one.is_valid()) return false;
    opened.push_back(std::move(one));
  }
  return true;
}

void reserve_descriptor_table() {
  constexpr rlim_t kEntriesMax = 65'536;
  rlimit files{};
  if (::getrlimit(RLIMIT_NOFILE, &files) != 0) return;
  const Fd any(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  const auto last = static_cast<int>(std::min(files.rlim_cur, kEntriesMax)) - 1;
  // The table never shrinks.
  const Fd far_away(::fcntl(any.get(), F_DUPFD_CLOEXEC, last));
}

}  // namespace braid
