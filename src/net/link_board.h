// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "net/link_numbers.h"
#include "net/transport.h"

namespace braid {

// The numbers of all nodes that one I/O loop has flows to or from. They are there as long as
// somebody has flows that count in them, so what they count never becomes less meanwhile. Any
// thread; the lock is held when a link or a flow from another node begins, and while all() looks.
class LinkBoard {
 public:
  explicit LinkBoard(size_t rails) : rails_(rails) {}

  std::shared_ptr<LinkNumbers> of(const std::string& peer);
  // Those of the flow's rail; who has them has the node's, too.
  std::shared_ptr<RailNumbers> rail_of(const std::string& peer, uint16_t flow) {
    const auto link = of(peer);
    return {link, &link->rail_of(flow)};
  }
  std::vector<std::shared_ptr<const LinkNumbers>> all() const;

 private:
  const size_t rails_;
  mutable std::mutex mutex_;
  std::map<std::string, std::weak_ptr<LinkNumbers>> numbers_;  // by the peer's name
};

// The links of all I/O loops, by node; `rails`: their names.
std::vector<LinkStatus> join_links(std::span<const std::shared_ptr<const LinkNumbers>> loops,
                                   std::span<const std::string> rails);

}  // namespace braid
