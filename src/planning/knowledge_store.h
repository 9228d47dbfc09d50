// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>

#include "tune/knowledge.h"

namespace braid {

// What tuning has learned, in a file of this daemon. Tuning goes on without it: what is wrong with
// the file is logged and never anybody's error. Control loop only.
class KnowledgeStore {
 public:
  static constexpr const char* kFileName = "tuning.json";

  // Reads `directory`/tuning.json; no such file: nothing is known yet. One that is no such file is
  // kept as tuning.json.broken. An empty `directory`: nothing is kept.
  explicit KnowledgeStore(const std::string& directory);

  std::optional<Knowledge::Found> find(const KnowledgeKey& key) const {
    return knowledge_.find(key);
  }
  // Replaces the file as a whole. That this cannot be done is said once.
  void add(KnowledgeEntry entry);
  const Knowledge& knowledge() const { return knowledge_; }

 private:
  void load();

  std::string path_;  // empty: none
  Knowledge knowledge_;
  bool has_said_so_ = false;
};

}  // namespace braid
