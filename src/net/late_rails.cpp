// SPDX-License-Identifier: Apache-2.0
#include "net/late_rails.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include <fmt/ranges.h>
#include <net/if.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include "base/fd.h"
#include "base/log.h"

namespace braid {
bool has_link(const std::string& rail) {
  ifreq request{};
  if (rail.size() >= sizeof(request.ifr_name)) return true;
  std::memcpy(request.ifr_name, rail.data(), rail.size());
  const Fd socket(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  if (!socket.is_valid() || ::ioctl(socket.get(), SIOCGIFFLAGS, &request) != 0) return true;
  constexpr int kIsUp = IFF_UP | IFF_RUNNING;
  return (request.ifr_flags & kIsUp) == kIsUp;
}

Result<std::set<size_t>> open_rails(const TransportOptions& options,
                                    const std::function<Status(size_t rail)>& open) {
  std::set<size_t> late;
  for (size_t rail = 0; rail < options.rails.size(); ++rail) {
    Status opened = open(rail);
    if (opened) continue;
    if (has_link(options.rails[rail])) return opened;
    late.insert(rail);
  }
  if (late.size() == options.rails.size()) {
    return make_status(StatusCode::Unavailable,
                       "transport.rails: none of {} has a carrier; a daemon needs one to start: "
                       "look at its cable, or bring it up",
                       fmt::join(options.rails, ", "));
  }
  for (const size_t rail : late) {
    BRAID_LOG_WARN(
        LogFields{.rail = options.rails[rail]},
        "rail {} is down or has no carrier: this node starts without it, and uses it as soon as it "
        "has one",
        options.rails[rail]);
  }
  return late;
}

LateRails::LateRails(Loop& loop, const TransportOptions& options, std::set<size_t> rails,
                     std::function<Status(size_t rail)> open,
                     std::function<void(size_t rail)> ready)
    : options_(options),
      rails_(std::move(rails)),
      open_(std::move(open)),
      ready_(std::move(ready)),
      timer_(loop),
      worker_(loop, "rails") {
  timer_.start_repeating(kLookEveryMs, [this] { look(); });
}

void LateRails::look() {
  if (rails_.empty()) return timer_.stop();
  for (const size_t rail : rails_) {
    if (trying_.contains(rail) || !has_link(options_.rails[rail])) continue;
    const auto opened = std::make_shared<Status>(StatusCode::Unavailable, "not tried yet");
    const bool is_taken = worker_.run([this, opened, rail] { *opened = open_(rail); },
                                      [this, opened, rail] { take(rail, *opened); });
    if (is_taken) trying_.insert(rail);
  }
}

void LateRails::take(size_t rail, const Status& opened) {
  trying_.erase(rail);
  if (opened) {
    rails_.erase(rail);
    ready_(rail);
  } else if (told_.insert(rail).second) {  // its address may come later than its carrier
    BRAID_LOG_WARN(LogFields{.rail = options_.rails[rail]},
                   "rail {} has a carrier and cannot be used yet: {}", options_.rails[rail],
                   opened.message());
  }
}

}  // namespace braid
