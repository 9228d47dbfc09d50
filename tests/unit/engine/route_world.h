// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <fmt/core.h>
#include <gtest/gtest.h>

#include "engine/route.h"

namespace braid::test {

using Routes = std::vector<Route>;  // by place
using Sum = std::string;            // whose parts, in the order of their addition, with brackets

template <typename Make>
inline Routes all_places(uint32_t nodes, Make make) {
  Routes all;
  for (uint32_t place = 0; place < nodes; ++place) all.push_back(make(nodes, place));
  return all;
}

inline Routes halving(uint32_t nodes) { return all_places(nodes, halving_route); }

inline Routes hierarchical(uint32_t racks, uint32_t rack_nodes) {
  Routes all;
  for (uint32_t place = 0; place < racks * rack_nodes; ++place)
    all.push_back(hierarchical_route(racks, rack_nodes, place));
  return all;
}

struct Message {
  uint32_t from = 0;
  uint32_t to = 0;
  bool is_sum = false;
  Sum sum;
};

// One segment on all nodes, with messages that come in any order.
class SegmentWorld {
 public:
  SegmentWorld(const Routes& routes, uint32_t segment, uint64_t seed) : random_(seed) {
    for (const Route& route : routes) {
      routes_.push_back(route.segments[segment]);
      sums_.push_back(fmt::format("{}", sums_.size()));
      added_.push_back(0);
      is_final_.push_back(false);
    }
    for (uint32_t place = 0; place < routes_.size(); ++place) {
      for (const uint32_t to : routes_[place].own_part_to)
        on_their_way_.push_back({place, to, false, sums_[place]});
      go_on(place);
    }
  }

  void run() {
    while (!on_their_way_.empty()) {
      const size_t index = random_() % on_their_way_.size();
      const Message message = on_their_way_[index];
      on_their_way_.erase(on_their_way_.begin() + static_cast<ptrdiff_t>(index));
      ++sent_[message.from];
      receive(message);
      if (testing::Test::HasFailure()) return;
    }
  }

  // What each node holds at the end; empty where that is not the sum of all.
  const Sum& sum_at(uint32_t place) const { return is_final_[place] ? sums_[place] : kNone; }
  uint32_t messages_of(uint32_t place) { return sent_[place]; }
  size_t kept() const { return kept_.size(); }

 private:
  void receive(const Message& message) {
    const SegmentRoute& route = routes_[message.to];
    if (!message.is_sum) {
      const bool is_new = kept_.emplace(std::pair{message.to, message.from}, message.sum).second;
      EXPECT_TRUE(is_new) << "a part comes twice";
      return go_on(message.to);
    }
    EXPECT_EQ(route.sum_from, message.from);
    EXPECT_EQ(added_[message.to], route.parts_from.size()) << "a sum without this node's part";
    EXPECT_FALSE(is_final_[message.to]) << "a sum comes twice";
    sums_[message.to] = message.sum;
    is_final_[message.to] = true;
    pass_sum_on(message.to);
  }

  void go_on(uint32_t place) {
    const SegmentRoute& route = routes_[place];
    if (route.is_direct()) return add_all(place);
    const bool was_summed = added_[place] == route.parts_from.size() && added_[place] != 0;
    while (added_[place] < route.parts_from.size()) {
      const auto part = kept_.extract({place, route.parts_from[added_[place]]});
      if (part.empty()) return;
      sums_[place] = fmt::format("({} {})", sums_[place], part.mapped());
      ++added_[place];
    }
    if (was_summed) return;  // and a part that nobody waits for stays
    if (route.part_to) {
      on_their_way_.push_back({place, *route.part_to, false, sums_[place]});
    } else {
      is_final_[place] = true;
      pass_sum_on(place);
    }
  }

  void add_all(uint32_t place) {
    Sum sum;
    for (uint32_t from = 0; from < routes_.size(); ++from) {
      const auto part = kept_.find({place, from});
      if (from != place && part == kept_.end()) return;
      sum += fmt::format("{} ", from == place ? sums_[place] : part->second);
    }
    std::erase_if(kept_, [&](const auto& part) { return part.first.first == place; });
    sums_[place] = sum;
    is_final_[place] = true;
  }

  void pass_sum_on(uint32_t place) {
    for (const uint32_t to : routes_[place].sum_to)
      on_their_way_.push_back({place, to, true, sums_[place]});
  }

  static inline const Sum kNone;
  std::mt19937_64 random_;
  std::vector<SegmentRoute> routes_;
  std::vector<Sum> sums_;
  std::vector<size_t> added_;
  std::vector<bool> is_final_;
  std::map<std::pair<uint32_t, uint32_t>, Sum> kept_;  // parts that have come, by (to, from)
  std::vector<Message> on_their_way_;
  std::map<uint32_t, uint32_t> sent_;
};

// Each node's part once.
inline void expect_complete(const Sum& sum, size_t nodes) {
  std::multiset<std::string> parts;
  std::string number;
  for (const char c : sum + " ") {
    if (std::isdigit(static_cast<unsigned char>(c)) != 0) {
      number += c;
    } else if (!number.empty()) {
      parts.insert(std::exchange(number, {}));
    }
  }
  std::multiset<std::string> all;
  for (size_t place = 0; place < nodes; ++place) all.insert(fmt::format("{}", place));
  EXPECT_EQ(parts, all) << sum;
}

// Returns how many segments each node sends.
inline std::vector<uint32_t> expect_all_reduced(const Routes& routes) {
  std::vector<uint32_t> sent(routes.size());
  for (uint32_t segment = 0; segment < routes[0].segments.size(); ++segment) {
    Sum first;
    for (uint64_t seed = 0; seed < 3; ++seed) {
      SegmentWorld world(routes, segment, seed);
      world.run();
      EXPECT_EQ(world.kept(), 0u) << "parts that nobody adds";
      if (seed == 0) first = world.sum_at(0);
      for (uint32_t place = 0; place < routes.size(); ++place) {
        EXPECT_EQ(world.sum_at(place), first) << "place " << place << ", segment " << segment;
        if (seed == 0) sent[place] += world.messages_of(place);
      }
      if (testing::Test::HasFailure()) return sent;
    }
    expect_complete(first, routes.size());
  }
  return sent;
}

// A unit that a node begins with a stream is begun by all: by what comes from those that have begun
// it, and by those that begin at once. Nobody waits for a stream that way. `empty`: segments.
inline void expect_all_begin(const Routes& routes, const std::vector<bool>& empty) {
  const auto waits = [&](uint32_t place) {
    const auto& segments = routes[place].begins_others;
    return !segments.empty() && std::none_of(segments.begin(), segments.end(),
                                             [&](uint32_t segment) { return empty[segment]; });
  };
  for (uint32_t first = 0; first < routes.size(); ++first) {
    if (!waits(first)) continue;
    std::vector<bool> has_begun(routes.size());
    for (uint32_t place = 0; place < routes.size(); ++place)
      has_begun[place] = place == first || !waits(place);
    // By segment and place: has this node sent its part?
    std::set<std::pair<uint32_t, uint32_t>> sent;
    for (bool is_changed = true; is_changed;) {
      is_changed = false;
      for (uint32_t place = 0; place < routes.size(); ++place) {
        if (!has_begun[place]) continue;
        for (uint32_t segment = 0; segment < routes[place].segments.size(); ++segment) {
          const SegmentRoute& route = routes[place].segments[segment];
          if (empty[segment]) continue;
          for (const uint32_t to : route.own_part_to) {
            is_changed |= !has_begun[to];
            has_begun[to] = true;
          }
          if (!route.part_to || sent.contains({segment, place})) continue;
          if (!std::all_of(route.parts_from.begin(), route.parts_from.end(), [&](uint32_t from) {
                return sent.contains({segment, from});
              }))
            continue;
          sent.emplace(segment, place);
          has_begun[*route.part_to] = true;
          is_changed = true;
        }
      }
    }
    EXPECT_EQ(std::count(has_begun.begin(), has_begun.end(), false), 0) << "begun at " << first;
  }
}

// Whichever segments are empty.
inline void expect_all_begin(const Routes& routes) {
  const size_t segments = routes.front().segments.size();
  expect_all_begin(routes, std::vector<bool>(segments));
  std::mt19937_64 random(segments);
  for (int times = 0; times < 40 && !testing::Test::HasFailure(); ++times) {
    std::vector<bool> empty(segments);
    for (size_t segment = 0; segment < segments; ++segment) empty[segment] = random() % 3 == 0;
    SCOPED_TRACE(testing::PrintToString(empty));
    expect_all_begin(routes, empty);
  }
}

inline void expect_neighbours_match(const Routes& routes) {
  for (uint32_t place = 0; place < routes.size(); ++place) {
    std::set<uint32_t> targets;
    for (const SegmentRoute& route : routes[place].segments) {
      if (route.part_to) targets.insert(*route.part_to);
      targets.insert(route.sum_to.begin(), route.sum_to.end());
      targets.insert(route.own_part_to.begin(), route.own_part_to.end());
    }
    EXPECT_FALSE(targets.contains(place));
    EXPECT_EQ(std::vector<uint32_t>(targets.begin(), targets.end()), routes[place].targets);
    for (const uint32_t target : targets) {
      const auto& sources = routes[target].sources;
      EXPECT_TRUE(std::binary_search(sources.begin(), sources.end(), place)) << target;
    }
  }
  size_t sources = 0;
  size_t targets = 0;
  for (const Route& route : routes) {
    sources += route.sources.size();
    targets += route.targets.size();
  }
  EXPECT_EQ(sources, targets) << "a source that does not send";
}

}  // namespace braid::test
