// SPDX-License-Identifier: Apache-2.0
// Schedules alone: every node's view of them, put together.
#include "collective/schedule.h"

#include <algorithm>
#include <deque>
#include <map>
#include <random>
#include <set>
#include <string>

#include <fmt/core.h>
#include <gtest/gtest.h>

namespace braid::test {
namespace {

using Schedules = std::vector<Schedule>;  // by place
using Sum = std::string;  // whose parts, in the order of their addition, with brackets

Schedules halving(uint32_t nodes) {
  Schedules all;
  for (uint32_t place = 0; place < nodes; ++place) all.push_back(halving_schedule(nodes, place));
  return all;
}

Schedules hierarchical(uint32_t racks, uint32_t rack_nodes) {
  Schedules all;
  for (uint32_t place = 0; place < racks * rack_nodes; ++place)
    all.push_back(hierarchical_schedule(racks, rack_nodes, place));
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
  SegmentWorld(const Schedules& schedules, uint32_t segment, uint64_t seed) : random_(seed) {
    for (const Schedule& schedule : schedules) {
      routes_.push_back(schedule.segments[segment]);
      sums_.push_back(fmt::format("{}", sums_.size()));
      added_.push_back(0);
      is_final_.push_back(false);
    }
    for (uint32_t place = 0; place < routes_.size(); ++place) go_on(place);
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
void expect_complete(const Sum& sum, size_t nodes) {
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
std::vector<uint32_t> expect_all_reduced(const Schedules& schedules) {
  std::vector<uint32_t> sent(schedules.size());
  for (uint32_t segment = 0; segment < schedules[0].segments.size(); ++segment) {
    Sum first;
    for (uint64_t seed = 0; seed < 3; ++seed) {
      SegmentWorld world(schedules, segment, seed);
      world.run();
      EXPECT_EQ(world.kept(), 0u) << "parts that nobody adds";
      if (seed == 0) first = world.sum_at(0);
      for (uint32_t place = 0; place < schedules.size(); ++place) {
        EXPECT_EQ(world.sum_at(place), first) << "place " << place << ", segment " << segment;
        if (seed == 0) sent[place] += world.messages_of(place);
      }
      if (testing::Test::HasFailure()) return sent;
    }
    expect_complete(first, schedules.size());
  }
  return sent;
}

// A unit that a node begins is begun by all: by what comes from those that have begun it, and by
// those that begin at once. Nobody waits for a stream that way.
void expect_all_begin(const Schedules& schedules) {
  for (uint32_t first = 0; first < schedules.size(); ++first) {
    std::vector<bool> has_begun(schedules.size());
    for (uint32_t place = 0; place < schedules.size(); ++place)
      has_begun[place] = place == first || schedules[place].begins_at_once;
    // By segment and place: has this node sent its part?
    std::set<std::pair<uint32_t, uint32_t>> sent;
    for (bool is_changed = true; is_changed;) {
      is_changed = false;
      for (uint32_t place = 0; place < schedules.size(); ++place) {
        if (!has_begun[place]) continue;
        for (uint32_t segment = 0; segment < schedules[place].segments.size(); ++segment) {
          const SegmentRoute& route = schedules[place].segments[segment];
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

void expect_neighbours_match(const Schedules& schedules) {
  for (uint32_t place = 0; place < schedules.size(); ++place) {
    std::set<uint32_t> targets;
    for (const SegmentRoute& route : schedules[place].segments) {
      if (route.part_to) targets.insert(*route.part_to);
      targets.insert(route.sum_to.begin(), route.sum_to.end());
    }
    EXPECT_FALSE(targets.contains(place));
    EXPECT_EQ(std::vector<uint32_t>(targets.begin(), targets.end()), schedules[place].targets);
    for (const uint32_t target : targets) {
      const auto& sources = schedules[target].sources;
      EXPECT_TRUE(std::binary_search(sources.begin(), sources.end(), place)) << target;
    }
  }
  size_t sources = 0;
  size_t targets = 0;
  for (const Schedule& schedule : schedules) {
    sources += schedule.sources.size();
    targets += schedule.targets.size();
  }
  EXPECT_EQ(sources, targets) << "a source that does not send";
}

class HalvingSchedule : public testing::TestWithParam<uint32_t> {};

TEST_P(HalvingSchedule, SumsAllPartsOnceInOneOrder) {
  const uint32_t nodes = GetParam();
  const Schedules schedules = halving(nodes);
  const auto sent = expect_all_reduced(schedules);
  expect_all_begin(schedules);
  expect_neighbours_match(schedules);
  const bool is_power_of_two = (nodes & (nodes - 1)) == 0;
  for (uint32_t place = 0; place < nodes && is_power_of_two; ++place) {
    EXPECT_EQ(sent[place], 2 * (nodes - 1)) << "as many bytes as around the ring";
    EXPECT_EQ(1U << schedules[place].targets.size(), nodes) << "a partner for each round";
  }
}

INSTANTIATE_TEST_SUITE_P(Nodes, HalvingSchedule, testing::Range(2U, 34U));

TEST(HalvingScheduleShape, NodesBeyondThePowerOfTwoSendAllToOne) {
  const Schedules schedules = halving(6);
  for (const uint32_t place : {4U, 5U}) {
    EXPECT_TRUE(schedules[place].begins_at_once);
    EXPECT_EQ(schedules[place].targets, std::vector<uint32_t>{place - 4});
    EXPECT_EQ(schedules[place].segments.size(), 4u);
  }
  EXPECT_FALSE(schedules[0].begins_at_once);
}

TEST(HalvingScheduleShape, MostBytesGoToTheNearestPlace) {
  const Schedule schedule = halving_schedule(8, 3);
  std::map<uint32_t, int> parts;
  for (const SegmentRoute& route : schedule.segments) {
    if (route.part_to) ++parts[*route.part_to];
  }
  EXPECT_EQ(parts, (std::map<uint32_t, int>{{2, 4}, {1, 2}, {7, 1}}));
}

class HierarchicalSchedule : public testing::TestWithParam<std::pair<uint32_t, uint32_t>> {};

TEST_P(HierarchicalSchedule, SumsAllPartsOnceInOneOrder) {
  const auto [racks, rack_nodes] = GetParam();
  const uint32_t nodes = racks * rack_nodes;
  const Schedules schedules = hierarchical(racks, rack_nodes);
  const auto sent = expect_all_reduced(schedules);
  expect_all_begin(schedules);
  expect_neighbours_match(schedules);
  for (uint32_t place = 0; place < nodes; ++place) {
    EXPECT_EQ(sent[place], 2 * (nodes - 1)) << "as many bytes as around the ring";
    uint32_t to_other_racks = 0;
    for (const SegmentRoute& route : schedules[place].segments) {
      const auto is_elsewhere = [&, rack_nodes = rack_nodes](uint32_t other) {
        return other / rack_nodes != place / rack_nodes;
      };
      if (route.part_to && is_elsewhere(*route.part_to)) ++to_other_racks;
      to_other_racks += static_cast<uint32_t>(
          std::count_if(route.sum_to.begin(), route.sum_to.end(), is_elsewhere));
    }
    EXPECT_EQ(to_other_racks, 2 * (racks - 1));
  }
}

INSTANTIATE_TEST_SUITE_P(Racks, HierarchicalSchedule,
                         testing::Values(std::pair{2U, 2U}, std::pair{2U, 3U}, std::pair{3U, 2U},
                                         std::pair{3U, 3U}, std::pair{2U, 5U}, std::pair{5U, 2U},
                                         std::pair{4U, 4U}, std::pair{4U, 8U}));

}  // namespace
}  // namespace braid::test
