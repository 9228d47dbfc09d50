// SPDX-License-Identifier: Apache-2.0
#include "coordinator/knowledge_store.h"

#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "base/log.h"
#include "base/mutex.h"
#include "base/write_file.h"

namespace braid {

// Where the loop leaves what is to be written, and where the writer finds it.
class KnowledgeStore::File {
 public:
  explicit File(std::string path) : path_(std::move(path)) {}

  const std::string& path() const { return path_; }

  // True: nothing else waited for write().
  bool put(const Knowledge& knowledge) BRAID_EXCLUDES(mutex_) {
    const MutexLock lock(mutex_);
    const bool was_empty = !unwritten_.has_value();
    unwritten_ = knowledge;
    return was_empty;
  }

  // What was put last, if that was not written yet. One thread at a time.
  void write() BRAID_EXCLUDES(mutex_) {
    std::optional<Knowledge> knowledge;
    {
      const MutexLock lock(mutex_);
      knowledge.swap(unwritten_);
    }
    if (knowledge) replace(to_json(*knowledge));
  }

 private:
  void replace(const std::string& text);

  const std::string path_;
  bool has_said_so_ = false;
  Mutex mutex_;
  std::optional<Knowledge> unwritten_ BRAID_GUARDED_BY(mutex_);
};

// The new file takes the old one's place when it is complete. A machine that loses its power at
// that moment may lose it: it is not synchronised, for what it holds can be learned again.
void KnowledgeStore::File::replace(const std::string& text) {
  const std::string next = path_ + ".next";
  make_private_folder(std::filesystem::path(path_).parent_path().string());
  Status written = write_file(next, text, FileReaders::Owner);
  if (written && std::rename(next.c_str(), path_.c_str()) != 0)
    written = Status::from_errno(errno, fmt::format("{}: cannot be replaced", path_));
  if (written || has_said_so_) return;
  has_said_so_ = true;
  BRAID_LOG_WARN("{}; what tuning learns is forgotten when this daemon ends", written.message());
}

KnowledgeStore::KnowledgeStore(const std::string& directory, WorkThread* writer) : writer_(writer) {
  if (directory.empty()) return;
  file_ = std::make_shared<File>((std::filesystem::path(directory) / kFileName).string());
  load();
}

KnowledgeStore::~KnowledgeStore() {
  if (file_ != nullptr) file_->write();
}

void KnowledgeStore::load() {
  const std::string& path = file_->path();
  std::ifstream file(path, std::ios::binary);
  if (!file) {
    std::error_code error;
    if (std::filesystem::exists(path, error) || error) {
      BRAID_LOG_WARN("{}: cannot be read{}{}; tuning begins without what it knew", path,
                     error ? ": " : "", error ? error.message() : "");
    }
    return;
  }
  const std::string text((std::istreambuf_iterator<char>(file)), {});
  auto parsed = parse_knowledge(text, path);
  if (parsed) {
    knowledge_ = std::move(parsed).value();
    return;
  }
  const std::string aside = path + ".broken";
  const bool is_kept = std::rename(path.c_str(), aside.c_str()) == 0;
  BRAID_LOG_ERROR("{}; tuning begins without it{}", parsed.status().message(),
                  is_kept ? ", the file is now " + aside : "");
}

void KnowledgeStore::add(KnowledgeEntry entry) {
  knowledge_.add(std::move(entry));
  if (file_ == nullptr) return;
  const bool is_first = file_->put(knowledge_);
  if (writer_ == nullptr) {
    file_->write();
  } else if (is_first) {
    writer_->post([file = file_] { file->write(); });
  }
}

}  // namespace braid
