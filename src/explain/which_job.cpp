// SPDX-License-Identifier: Apache-2.0
#include "explain/which_job.h"

#include <algorithm>
#include <cstddef>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/printable.h"

namespace braid {
namespace {

constexpr size_t kNamesListed = 16;

std::string list_of(const std::vector<std::string>& names) {
  std::vector<std::string> parts;
  for (const std::string& name : names) {
    if (parts.size() == kNamesListed) {
      parts.push_back(fmt::format("and {} more", names.size() - kNamesListed));
      break;
    }
    parts.push_back(fmt::format("'{}'", printable(name)));
  }
  return fmt::format("{}", fmt::join(parts, ", "));
}

}  // namespace

Result<std::string> which_job(std::vector<std::string> running, const std::string& given) {
  std::ranges::sort(running);
  running.erase(std::unique(running.begin(), running.end()), running.end());
  if (std::ranges::binary_search(running, given)) return given;
  std::vector<std::string> meant;
  for (const std::string& name : running)
    if (name.starts_with(given)) meant.push_back(name);
  if (meant.size() == 1) return std::move(meant.front());
  if (running.empty() && given.empty())
    return Status(StatusCode::NotFound, "no job runs on this node");
  const std::string said = printable(given);
  if (running.empty()) {
    return make_status(StatusCode::NotFound, "no job '{}' runs on this node, nor any other one",
                       said);
  }
  if (meant.empty()) {
    return make_status(StatusCode::NotFound, "no job '{}' runs on this node; there {} {}", said,
                       running.size() == 1 ? "is" : "are", list_of(running));
  }
  if (given.empty()) {
    return make_status(StatusCode::InvalidArgument,
                       "{} jobs run on this node: say which one with --job: {}", meant.size(),
                       list_of(meant));
  }
  return make_status(StatusCode::InvalidArgument,
                     "'{}' is the beginning of {} jobs on this node: {}", said, meant.size(),
                     list_of(meant));
}

}  // namespace braid
