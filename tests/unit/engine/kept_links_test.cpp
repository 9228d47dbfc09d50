// SPDX-License-Identifier: Apache-2.0
#include "engine/kept_links.h"

#include <map>
#include <memory>

#include <gtest/gtest.h>

namespace braid {
namespace {

struct IdleLink final : Link {
  void submit(OutgoingChunk) override {}
};

struct CountingLinks final : Links {
  Link* find(NodeId peer) override {
    ++looked_up;
    const auto found = links.find(peer);
    return found == links.end() ? nullptr : found->second.get();
  }
  void limit(uint64_t, const LinkLimits&) override {}
  void open(NodeId peer) { links[peer] = std::make_unique<IdleLink>(); }
  void lose(NodeId peer) {
    links.erase(peer);
    note_lost();
  }
  std::map<NodeId, std::unique_ptr<Link>> links;
  int looked_up = 0;
};

TEST(KeptLinksTest, EachPlacesLinkIsLookedUpOnce) {
  CountingLinks links;
  KeptLinks kept;
  for (const NodeId peer : {10, 11}) links.open(peer);
  for (int chunk = 0; chunk < 5; ++chunk) {
    EXPECT_EQ(kept.find(links, 0, 10), links.links[10].get());
    EXPECT_EQ(kept.find(links, 1, 11), links.links[11].get());
  }
  EXPECT_EQ(links.looked_up, 2);
}

TEST(KeptLinksTest, PlacesThatShareRoomGetEachTheirOwnLink) {
  CountingLinks links;
  KeptLinks kept;
  for (NodeId peer = 100; peer < 140; ++peer) links.open(peer);
  for (int round = 0; round < 2; ++round) {
    for (uint32_t place = 0; place < 40; ++place)
      EXPECT_EQ(kept.find(links, place, 100 + place), links.links[100 + place].get());
  }
}

TEST(KeptLinksTest, WhatWasLostIsGivenToNobodyAndWhatIsOpenedAnewIsFound) {
  CountingLinks links;
  KeptLinks kept;
  EXPECT_EQ(kept.find(links, 0, 10), nullptr);
  links.open(10);
  EXPECT_NE(kept.find(links, 0, 10), nullptr) << "a link that was not there may come";
  links.lose(10);
  EXPECT_EQ(kept.find(links, 0, 10), nullptr);
  links.open(10);
  EXPECT_EQ(kept.find(links, 0, 10), links.links[10].get());
}

}  // namespace
}  // namespace braid
