// SPDX-License-Identifier: Apache-2.0
#include "levels/level_report.h"

#include <algorithm>
#include <cctype>
#include <optional>
#include <set>

#include <fmt/format.h>

namespace braid::client {
namespace {

using Reports = std::span<const LevelReport>;

// What the first rank says that says something.
std::optional<std::string> first_reason(Reports reports, SaidText LevelReport::*text) {
  for (size_t rank = 0; rank < reports.size(); ++rank) {
    const SaidText& said = reports[rank].*text;
    if (!said.is_empty()) return fmt::format("rank {}: {}", rank, said.text());
  }
  return std::nullopt;
}

std::string version_text(uint32_t version) {
  return fmt::format("{}.{}.{}", version / 10000, version / 100 % 100, version % 100);
}

// The first rank that is not where it should be: ranks of a node come one after the other, equally
// many on each.
std::optional<size_t> find_misplaced(Reports reports, size_t node_ranks) {
  std::set<uint64_t> nodes;
  for (size_t i = 0; i < reports.size(); ++i) {
    const bool is_first = i % node_ranks == 0;
    const bool is_new = nodes.insert(reports[i].node).second;
    if (is_first != is_new || (!is_first && reports[i].node != reports[i - 1].node)) return i;
  }
  if (reports.size() % node_ranks != 0) return reports.size() - 1;
  return std::nullopt;
}

std::optional<std::string> find_place(Reports reports, uint32_t rank, LevelPlace& place) {
  const auto size = static_cast<uint32_t>(reports.size());
  uint32_t node_ranks = 1;
  while (node_ranks < size && reports[node_ranks].node == reports[0].node) ++node_ranks;
  if (node_ranks == size) return "all ranks are on one node";
  if (const auto misplaced = find_misplaced(reports, node_ranks)) {
    return fmt::format(
        "the nodes have different numbers of ranks, or ranks of a node are not "
        "neighbours: rank 0's node begins with {}, and rank {} does not fit to that",
        node_ranks, *misplaced);
  }
  if (node_ranks == 1) return "each node has one rank";
  place = {size / node_ranks, node_ranks, rank / node_ranks, rank % node_ranks};
  return std::nullopt;
}

std::optional<std::string> find_shared_gpu(Reports reports, const LevelPlace& place) {
  for (uint32_t i = 0; i < reports.size(); ++i) {
    const uint32_t end = (i / place.node_ranks + 1) * place.node_ranks;
    for (uint32_t j = i + 1; j < end; ++j)
      if (reports[i].gpu == reports[j].gpu) return fmt::format("ranks {} and {} share a GPU", i, j);
  }
  return std::nullopt;
}

std::optional<std::string> find_other_version(Reports reports) {
  for (size_t i = 1; i < reports.size(); ++i) {
    if (reports[i].nccl_version == reports[0].nccl_version) continue;
    return fmt::format("rank {} has NCCL {}, rank 0 has {}", i,
                       version_text(reports[i].nccl_version),
                       version_text(reports[0].nccl_version));
  }
  return std::nullopt;
}

}  // namespace

void SaidText::set(std::string_view text) {
  bytes_ = {};
  std::ranges::copy(text.substr(0, bytes_.size() - 1), bytes_.begin());
  if (is_empty()) bytes_[0] = '?';
}

std::string SaidText::text() const {
  std::string text(bytes_.begin(), std::ranges::find(bytes_, '\0'));
  std::ranges::replace_if(
      text, [](unsigned char letter) { return std::isprint(letter) == 0; }, '?');
  return text;
}

LevelChoice choose_levels(Reports reports, uint32_t rank) {
  LevelChoice choice;
  for (size_t i = 0; i < reports.size(); ++i) {
    if (reports[i].version == kLevelVersion) continue;
    choice.reason = fmt::format("rank {} has a libbraid of another version", i);
    return choice;
  }
  if (auto reason = first_reason(reports, &LevelReport::no_device)) {
    choice.levels = 0;
    choice.reason = *reason;
    return choice;
  }
  LevelPlace place;
  auto reason = find_place(reports, rank, place);
  if (!reason) reason = first_reason(reports, &LevelReport::no_two_levels);
  if (!reason) reason = find_shared_gpu(reports, place);
  if (!reason) reason = find_other_version(reports);
  if (reason) {
    choice.reason = *reason;
    return choice;
  }
  choice.levels = 2;
  choice.place = place;
  return choice;
}

}  // namespace braid::client
