// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "tune/search_space.h"

namespace braid {

// What decides how fast a setting is: the job's tensors, and what they travel over.
struct KnowledgeKey {
  uint64_t tensors_hash = 0;  // of dtypes and counts in order: the same model
  uint64_t bytes = 0;         // of all tensors
  uint32_t tensors = 0;
  uint32_t nodes = 0;
  uint32_t ranks_per_node = 0;
  uint32_t rails = 0;
  uint32_t cores = 0;  // of one node

  bool operator==(const KnowledgeKey&) const = default;
};

// How far apart two jobs are: the sum of |log₂ ratio| of bytes, nodes and rails, a half of that of
// ranks per node and cores, and a quarter of that of tensors. 1: one of the first three is twice as
// large. 0 for another model that is just as large.
double distance_of(const KnowledgeKey& a, const KnowledgeKey& b);

// What the tuning of one job ended with.
struct KnowledgeEntry {
  KnowledgeKey key;
  NamedValues values;         // of the winner, by the parameters' names
  double gain = 1;            // the defaults' seconds / the winner's
  double seconds = 0;         // of a step with the winner
  uint32_t trials = 0;        // that it took
  uint64_t unix_seconds = 0;  // when

  bool operator==(const KnowledgeEntry&) const = default;
};

// What was learned in earlier jobs: one entry per key, the oldest are forgotten first. The caller
// reads and writes the file. One thread.
class Knowledge {
 public:
  static constexpr size_t kEntriesMax = 1000;
  static constexpr double kDistanceMax = 2;  // what lies farther away is not alike
  static constexpr uint32_t kVersion = 1;

  struct Found {
    KnowledgeEntry entry;
    double distance = 0;
    bool is_same_job = false;  // the key is equal
  };

  // Replaces the entry with the same key. The one that goes when there are too many is that with
  // the smallest unix_seconds, the new one included.
  void add(KnowledgeEntry entry);
  // The entry of this key, or the nearest one within kDistanceMax; the newest of equally near ones.
  std::optional<Found> find(const KnowledgeKey& key) const;
  const std::vector<KnowledgeEntry>& entries() const { return entries_; }  // the oldest first

 private:
  std::vector<KnowledgeEntry> entries_;
};

// {"version": 1, "entries": [{"tensors_hash": "00c0ffee00c0ffee", "bytes", "tensors", "nodes",
// "ranks_per_node", "rails", "cores", "values": {"chunk_bytes": 1048576, …}, "gain", "seconds",
// "trials", "unix_seconds"}, …]}; the hash in 16 hexadecimal digits, since not every reader of JSON
// has integers of 64 bits. Errors (InvalidArgument) begin with `file` and name the entry; so do
// another version, more than kEntriesMax entries and a key that stands twice.
Result<Knowledge> parse_knowledge(std::string_view text, std::string_view file);
std::string to_json(const Knowledge& knowledge);

}  // namespace braid
