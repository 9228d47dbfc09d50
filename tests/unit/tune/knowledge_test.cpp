// SPDX-License-Identifier: Apache-2.0
#include "tune/knowledge.h"

#include <gtest/gtest.h>

namespace braid {
namespace {

KnowledgeEntry entry(uint64_t hash, uint64_t bytes = 100 << 20, uint64_t when = 1000) {
  return {{hash, bytes, 160, 8, 4, 2, 64},
          {{"chunk_bytes", 1 << 20}, {"streams", 4}},
          1.25,
          0.125,
          31,
          when};
}

std::string error_of(const std::string& text) {
  const auto knowledge = parse_knowledge(text, "k.json");
  return knowledge ? "no error" : knowledge.status().message();
}

std::string replaced(std::string text, const std::string& what, const std::string& with) {
  const size_t at = text.find(what);
  EXPECT_NE(at, std::string::npos) << what;
  return text.replace(at, what.size(), with);
}

TEST(Knowledge, ReadsWhatToJsonWrites) {
  Knowledge knowledge;
  EXPECT_EQ(error_of(to_json(knowledge)), "no error");
  knowledge.add(entry(0xfedcba9876543210, UINT64_MAX, 5));
  knowledge.add(entry(2));
  const auto again = parse_knowledge(to_json(knowledge), "k.json").value();
  EXPECT_EQ(again.entries(), knowledge.entries());
}

TEST(Knowledge, FindsTheSameJob) {
  Knowledge knowledge;
  knowledge.add(entry(1));
  knowledge.add(entry(2));
  const auto found = knowledge.find(entry(1).key).value();
  EXPECT_TRUE(found.is_same_job);
  EXPECT_EQ(found.entry, entry(1));
}

TEST(Knowledge, FindsTheNearestOne) {
  Knowledge knowledge;
  knowledge.add(entry(1, 100 << 20));
  knowledge.add(entry(2, 150 << 20));
  knowledge.add(entry(3, 300 << 20));
  KnowledgeKey key = entry(9, 200 << 20).key;
  const auto found = knowledge.find(key).value();
  EXPECT_FALSE(found.is_same_job);
  EXPECT_EQ(found.entry.key.tensors_hash, 2u);
  EXPECT_NEAR(found.distance, 0.415, 0.001);
}

TEST(Knowledge, PrefersTheNewestOfEquallyNearOnes) {
  Knowledge knowledge;
  knowledge.add(entry(2, 100, 20));
  knowledge.add(entry(1, 100, 10));
  EXPECT_EQ(knowledge.find(entry(9, 100).key)->entry.key.tensors_hash, 2u);
}

TEST(Knowledge, FindsNothingBeyondTheBound) {
  Knowledge knowledge;
  EXPECT_FALSE(knowledge.find(entry(1).key));
  knowledge.add(entry(1, 128));
  EXPECT_TRUE(knowledge.find(entry(9, 512).key));
  EXPECT_FALSE(knowledge.find(entry(9, 513).key));
}

TEST(Knowledge, DistanceCountsOctaves) {
  const KnowledgeKey key = entry(1).key;
  EXPECT_EQ(distance_of(key, key), 0);
  KnowledgeKey other = key;
  other.tensors_hash = 7;
  EXPECT_EQ(distance_of(key, other), 0);
  other.nodes *= 2;
  EXPECT_EQ(distance_of(key, other), 1);
  other.rails *= 2;
  EXPECT_EQ(distance_of(key, other), 2);
  other.cores /= 2;
  other.ranks_per_node *= 2;
  EXPECT_EQ(distance_of(key, other), 3);
  other.tensors *= 4;
  EXPECT_EQ(distance_of(key, other), 3.5);
  EXPECT_EQ(distance_of(key, other), distance_of(other, key));
}

TEST(Knowledge, ReplacesTheEntryOfTheSameJob) {
  Knowledge knowledge;
  knowledge.add(entry(1));
  KnowledgeEntry newer = entry(1, 100 << 20, 2000);
  newer.gain = 2;
  knowledge.add(newer);
  ASSERT_EQ(knowledge.entries().size(), 1u);
  EXPECT_EQ(knowledge.entries()[0].gain, 2);
}

TEST(Knowledge, ForgetsTheOldest) {
  Knowledge knowledge;
  for (uint64_t i = 0; i < Knowledge::kEntriesMax + 5; ++i) {
    knowledge.add(entry(i, 1 << 20, 10000 - i));  // the first one is the newest
  }
  ASSERT_EQ(knowledge.entries().size(), Knowledge::kEntriesMax);
  EXPECT_TRUE(knowledge.find(entry(0, 1 << 20).key)->is_same_job);
  EXPECT_FALSE(knowledge.find(entry(Knowledge::kEntriesMax, 1 << 20).key)->is_same_job);
}

TEST(ParseKnowledge, ErrorsNameTheEntry) {
  Knowledge knowledge;
  knowledge.add(entry(1));
  knowledge.add(entry(2));
  const std::string good = to_json(knowledge);
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"", "k.json: parse error"},
      {"{}", "k.json: the document.version is missing"},
      {R"({"version": 2, "entries": []})", "k.json: version 2; known is 1"},
      {R"({"version": 1})", "k.json: the document.entries is missing"},
      {R"({"version": 1, "entries": 5})", "the document.entries: 5 does not fit"},
      {R"({"version": 1, "entries": [], "more": 1})", "\"more\" is not known"},
      {R"({"version": 1, "entries": [7]})", "entries[0]: 7 is no object"},
      {replaced(good, "\"rails\": 2", "\"rail\": 2"), "entries[0].\"rail\" is not known"},
      {replaced(good, "\"rails\": 2", "\"_rails\": 2"), "entries[0].rails is missing"},
      {replaced(good, "\"rails\": 2", "\"rails\": 0"), "entries[0].rails: 0 is too small"},
      {replaced(good, "\"nodes\": 8", "\"nodes\": -8"), "entries[0].nodes: -8 is negative"},
      {replaced(good, "\"nodes\": 8", "\"nodes\": 4294967296"), "is too large"},
      {replaced(good, "0000000000000002", "2"), "entries[1].tensors_hash: \"2\" is no hash"},
      {replaced(good, "0000000000000002", "000000000000000G"), "is no hash"},
      {replaced(good, "0000000000000002", "0000000000000001"), "has a key that stands twice"},
      {replaced(good, "\"gain\": 1.25", "\"gain\": 0"), "entries[0].gain: 0 is not positive"},
      {replaced(good, "\"gain\": 1.25", "\"gain\": \"x\""), "entries[0].gain: \"x\" is no number"},
      {replaced(good, "\"streams\": 4", "\"streams\": 0.5"),
       "entries[0].values.streams: 0.5 is no integer"},
  };
  for (const auto& [text, expected] : cases) {
    EXPECT_NE(error_of(text).find(expected), std::string::npos)
        << text << "\n  gives: " << error_of(text) << "\n  expected: " << expected;
  }
}

TEST(ParseKnowledge, RefusesMoreEntriesThanItKeeps) {
  std::string text = R"({"version": 1, "entries": [0)";
  for (size_t i = 0; i < Knowledge::kEntriesMax; ++i) text += ",0";
  EXPECT_NE(error_of(text + "]}").find("does not fit"), std::string::npos);
}

}  // namespace
}  // namespace braid
