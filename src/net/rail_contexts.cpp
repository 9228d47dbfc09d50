// SPDX-License-Identifier: Apache-2.0
#include "net/rail_contexts.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include <fmt/ranges.h>
#include <net/if.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include "base/fd.h"
#include "base/log.h"
#include "proto/chunk.h"

namespace braid {
namespace {

// Around a chunk's bytes and header there are UCX's own headers (a few dozen bytes), in the same
// segment.
constexpr size_t kHeadroomBytes = 512;

Result<std::shared_ptr<UcxContext>> open_rail(const TransportOptions& options,
                                              const std::string& rail) {
  return UcxContext::create({rail, options.transports,
                             options.chunk_bytes + sizeof(proto::ChunkHeader) + kHeadroomBytes});
}

// False: it is a network device, and switched off or without a carrier. What is no network device,
// as mlx5_0:1, is for UCX to judge.
bool may_be_usable(const std::string& rail) {
  ifreq request{};
  if (rail.size() >= sizeof(request.ifr_name)) return true;
  std::memcpy(request.ifr_name, rail.data(), rail.size());
  const Fd socket(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  if (!socket.is_valid() || ::ioctl(socket.get(), SIOCGIFFLAGS, &request) != 0) return true;
  constexpr int kIsUp = IFF_UP | IFF_RUNNING;
  return (request.ifr_flags & kIsUp) == kIsUp;
}

}  // namespace

Result<std::vector<std::shared_ptr<UcxContext>>> open_rails(const TransportOptions& options) {
  std::vector<std::shared_ptr<UcxContext>> rails;
  for (const std::string& rail : options.rails) {
    auto opened = open_rail(options, rail);
    if (!opened && may_be_usable(rail)) return opened.status();
    rails.push_back(opened ? std::move(*opened) : nullptr);
  }
  if (std::all_of(rails.begin(), rails.end(), [](const auto& rail) { return rail == nullptr; })) {
    return make_status(StatusCode::Unavailable,
                       "transport.rails: none of {} has a carrier; a daemon needs one to start: "
                       "look at its cable, or bring it up",
                       fmt::join(options.rails, ", "));
  }
  for (size_t rail = 0; rail < rails.size(); ++rail) {
    if (rails[rail] != nullptr) continue;
    BRAID_LOG_WARN(
        LogFields{.rail = options.rails[rail]},
        "rail {} is down or has no carrier: this node starts without it, and uses it as soon as it "
        "has one",
        options.rails[rail]);
  }
  return rails;
}

LateRails::LateRails(Loop& loop, const TransportOptions& options, std::set<size_t> rails,
                     Ready ready)
    : options_(options),
      rails_(std::move(rails)),
      ready_(std::move(ready)),
      timer_(loop),
      worker_(loop, "rails") {
  timer_.start_repeating(kLookEveryMs, [this] { look(); });
}

void LateRails::look() {
  if (rails_.empty()) return timer_.stop();
  for (const size_t rail : rails_) {
    const std::string& name = options_.rails[rail];
    if (trying_.contains(rail) || !may_be_usable(name)) continue;
    using Opened = Result<std::shared_ptr<UcxContext>>;
    const auto opened = std::make_shared<Opened>(Status(StatusCode::Unavailable, "not tried yet"));
    const bool is_taken =
        worker_.run([this, opened, &name] { *opened = open_rail(options_, name); },
                    [this, opened, rail] { take(rail, *opened); });
    if (is_taken) trying_.insert(rail);
  }
}

void LateRails::take(size_t rail, const Result<std::shared_ptr<UcxContext>>& opened) {
  trying_.erase(rail);
  if (opened) {
    rails_.erase(rail);
    ready_(rail, *opened);
  } else if (told_.insert(rail).second) {  // its address may come later than its carrier
    BRAID_LOG_WARN(LogFields{.rail = options_.rails[rail]},
                   "rail {} has a carrier and cannot be used yet: {}", options_.rails[rail],
                   opened.status().message());
  }
}

}  // namespace braid
