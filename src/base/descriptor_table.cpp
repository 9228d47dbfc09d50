// SPDX-License-Identifier: Apache-2.0
#include "base/descriptor_table.h"

#include <algorithm>

#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/fd.h"

namespace braid {

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
