// SPDX-License-Identifier: Apache-2.0
#include "planning/knowledge_store.h"

#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "base/log.h"
#include "base/write_file.h"

namespace braid {

KnowledgeStore::KnowledgeStore(const std::string& directory) {
  if (directory.empty()) return;
  path_ = (std::filesystem::path(directory) / kFileName).string();
  load();
}

void KnowledgeStore::load() {
  std::ifstream file(path_, std::ios::binary);
  if (!file) {
    std::error_code error;
    if (std::filesystem::exists(path_, error) || error) {
      BRAID_LOG_WARN("{}: cannot be read{}{}; tuning begins without what it knew", path_,
                     error ? ": " : "", error ? error.message() : "");
    }
    return;
  }
  const std::string text((std::istreambuf_iterator<char>(file)), {});
  auto parsed = parse_knowledge(text, path_);
  if (parsed) {
    knowledge_ = std::move(parsed).value();
    return;
  }
  const std::string aside = path_ + ".broken";
  const bool is_kept = std::rename(path_.c_str(), aside.c_str()) == 0;
  BRAID_LOG_ERROR("{}; tuning begins without it{}", parsed.status().message(),
                  is_kept ? ", the file is now " + aside : "");
}

// The new file takes the old one's place when it is complete. A machine that loses its power at
// that moment may lose it: it is not synchronised, for that would hold up the control loop.
void KnowledgeStore::add(KnowledgeEntry entry) {
  knowledge_.add(std::move(entry));
  if (path_.empty()) return;
  const std::string next = path_ + ".next";
  std::error_code ignored;  // writing will tell
  std::filesystem::create_directories(std::filesystem::path(path_).parent_path(), ignored);
  Status written = write_file(next, to_json(knowledge_));
  if (written && std::rename(next.c_str(), path_.c_str()) != 0)
    written = Status::from_errno(errno, fmt::format("{}: cannot be replaced", path_));
  if (written || has_said_so_) return;
  has_said_so_ = true;
  BRAID_LOG_WARN("{}; what tuning learns is forgotten when this daemon ends", written.message());
}

}  // namespace braid
