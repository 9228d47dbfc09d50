// SPDX-License-Identifier: Apache-2.0
#include "net/link_board.h"

#include <algorithm>

namespace braid {
namespace {

void add_rail(LinkStatus::Rail& sum, const RailNumbers& rail) {
  sum.bytes_sent += rail.bytes_sent.get();
  sum.bytes_received += rail.bytes_received.get();
  sum.chunks_returned += rail.chunks_returned.get();
  sum.chunks_overdue += rail.chunks_overdue.get();
  sum.segments_resent += rail.segments_resent.get();
  sum.flow_failures += rail.flow_failures.get();
  sum.flow_replacements += rail.flow_replacements.get();
  sum.flows_open += rail.flows_open.get();
  sum.flows_opening += rail.flows_opening.get();
  sum.flows_failed += rail.flows_failed.get();
  sum.unacknowledged_bytes += rail.unacknowledged_bytes.get();
  sum.oldest_ns = std::max(sum.oldest_ns, rail.oldest_ns.get());
  sum.path_round_trip_ns = std::max(sum.path_round_trip_ns, rail.path_round_trip_ns.get());
}

}  // namespace

std::shared_ptr<LinkNumbers> LinkBoard::of(const std::string& peer) {
  const std::lock_guard lock(mutex_);
  std::erase_if(numbers_, [](const auto& one) { return one.second.expired(); });
  std::weak_ptr<LinkNumbers>& known = numbers_[peer];
  std::shared_ptr<LinkNumbers> numbers = known.lock();
  if (numbers == nullptr) {
    numbers = std::make_shared<LinkNumbers>(peer, rails_);
    known = numbers;
  }
  return numbers;
}

std::vector<std::shared_ptr<const LinkNumbers>> LinkBoard::all() const {
  std::vector<std::shared_ptr<const LinkNumbers>> all;
  const std::lock_guard lock(mutex_);
  for (const auto& [peer, known] : numbers_) {
    if (auto numbers = known.lock()) all.push_back(std::move(numbers));
  }
  return all;
}

std::vector<LinkStatus> join_links(std::span<const std::shared_ptr<const LinkNumbers>> loops,
                                   std::span<const std::string> rails) {
  std::map<std::string, LinkStatus> links;
  for (const auto& numbers : loops) {
    LinkStatus& link = links[numbers->peer()];
    link.peer = numbers->peer();
    link.queued_bytes += numbers->queued_bytes.get();
    if (link.trouble.empty()) link.trouble = numbers->trouble();
    link.rails.resize(rails.size());
    for (size_t i = 0; i < rails.size(); ++i) {
      link.rails[i].name = rails[i];
      add_rail(link.rails[i], numbers->rails()[i]);
    }
    for (const LinkNumbers::FlowRate& rate : numbers->rates())
      link.rails[rate.rail].flow_rates.push_back(rate.bytes_per_second);
  }
  std::vector<LinkStatus> list;
  list.reserve(links.size());
  for (auto& [peer, link] : links) {
    for (LinkStatus::Rail& rail : link.rails)
      std::sort(rail.flow_rates.begin(), rail.flow_rates.end());
    list.push_back(std::move(link));
  }
  return list;
}

}  // namespace braid
