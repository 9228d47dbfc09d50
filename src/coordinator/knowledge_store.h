// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "loop/work_thread.h"
#include "tune/knowledge.h"

namespace braid {

// What tuning has learned, in a file of this daemon. Tuning goes on without it: what is wrong with
// the file is logged and never anybody's error. Control loop only.
class KnowledgeStore {
 public:
  static constexpr const char* kFileName = "tuning.json";

  // Reads `directory`/tuning.json; no such file: nothing is known yet. One that is no such file is
  // kept as tuning.json.broken. An empty `directory`: nothing is kept. The file is written on
  // `writer`, for a slow disk would hold up the loop; none: at once.
  explicit KnowledgeStore(const std::string& directory, WorkThread* writer = nullptr);
  KnowledgeStore(const KnowledgeStore&) = delete;
  KnowledgeStore& operator=(const KnowledgeStore&) = delete;
  // Writes what the writer did not come to. After the writer's end.
  ~KnowledgeStore();

  std::optional<Knowledge::Found> find(const KnowledgeKey& key) const {
    return knowledge_.find(key);
  }
  // Replaces the file as a whole. That this cannot be done is said once.
  void add(KnowledgeEntry entry);
  const Knowledge& knowledge() const { return knowledge_; }

 private:
  class File;

  void load();

  std::shared_ptr<File> file_;  // null: nothing is kept
  WorkThread* const writer_;
  Knowledge knowledge_;
};

}  // namespace braid
