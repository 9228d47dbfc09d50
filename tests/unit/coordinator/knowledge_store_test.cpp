// SPDX-License-Identifier: Apache-2.0
#include "coordinator/knowledge_store.h"

#include <filesystem>
#include <fstream>
#include <future>
#include <iterator>

#include <gtest/gtest.h>

#include "base/write_file.h"
#include "ipc/temporary_directory.h"
#include "loop/work_thread.h"

namespace braid {
namespace {

KnowledgeEntry entry(uint64_t hash) {
  KnowledgeEntry result;
  result.key = {hash, 1000, 3, 4, 1, 1, 2};
  result.values = {{"streams", 4}};
  result.gain = 2;
  result.seconds = 0.5;
  result.trials = 20;
  result.unix_seconds = 1'700'000'000;
  return result;
}

std::string content_of(const std::string& path) {
  std::ifstream file(path);
  return {(std::istreambuf_iterator<char>(file)), {}};
}

class KnowledgeStoreTest : public ::testing::Test {
 protected:
  TemporaryDirectory directory_;
  const std::string path_ = directory_.file(KnowledgeStore::kFileName);
};

TEST_F(KnowledgeStoreTest, WhatIsLearnedIsThereAfterARestart) {
  KnowledgeStore(directory_.path()).add(entry(7));
  EXPECT_FALSE(std::filesystem::exists(path_ + ".next"));
  const KnowledgeStore again(directory_.path());
  const auto found = again.find(entry(7).key);
  ASSERT_TRUE(found.has_value());
  EXPECT_TRUE(found->is_same_job);
  EXPECT_EQ(found->entry, entry(7));
}

TEST_F(KnowledgeStoreTest, MakesItsDirectory) {
  KnowledgeStore(directory_.file("a/b")).add(entry(7));
  EXPECT_TRUE(std::filesystem::exists(directory_.file("a/b/tuning.json")));
}

TEST_F(KnowledgeStoreTest, ItsFileIsForItsOwnerAlone) {
  using std::filesystem::perms;
  const auto mode_of = [](const std::string& path) {
    return std::filesystem::status(path).permissions();
  };
  KnowledgeStore(directory_.file("a/b")).add(entry(7));
  EXPECT_EQ(mode_of(directory_.file("a/b/tuning.json")), perms::owner_read | perms::owner_write);
  EXPECT_EQ(mode_of(directory_.file("a/b")), perms::owner_all);
  // One of an earlier version is not.
  std::filesystem::permissions(directory_.file("a/b/tuning.json"), perms::all);
  ASSERT_TRUE(write_file(directory_.file("a/b/tuning.json.next"), "left behind").is_ok());
  KnowledgeStore(directory_.file("a/b")).add(entry(8));
  EXPECT_EQ(mode_of(directory_.file("a/b/tuning.json")), perms::owner_read | perms::owner_write);
}

TEST_F(KnowledgeStoreTest, ABrokenFileIsSetAside) {
  ASSERT_TRUE(write_file(path_, "{\"version\": 1, \"entr").is_ok());
  KnowledgeStore store(directory_.path());
  EXPECT_TRUE(store.knowledge().entries().empty());
  EXPECT_EQ(content_of(path_ + ".broken"), "{\"version\": 1, \"entr");
  EXPECT_FALSE(std::filesystem::exists(path_));
  store.add(entry(7));
  EXPECT_TRUE(KnowledgeStore(directory_.path()).find(entry(7).key).has_value());
}

TEST_F(KnowledgeStoreTest, WhatCannotBeWrittenIsRememberedUntilTheEnd) {
  const std::string file = directory_.file("file");
  ASSERT_TRUE(write_file(file, "").is_ok());
  KnowledgeStore store(file);  // no directory
  store.add(entry(7));
  store.add(entry(8));
  EXPECT_TRUE(store.find(entry(7).key).has_value());
  EXPECT_EQ(store.knowledge().entries().size(), 2u);
}

TEST_F(KnowledgeStoreTest, AWriterIsWaitedForByNobody) {
  auto loop = Loop::create("test");
  WorkThread writer(**loop, "writer");
  std::promise<void> disk;
  writer.post([&, ready = disk.get_future().share()] { ready.wait(); });
  KnowledgeStore store(directory_.path(), &writer);
  store.add(entry(7));
  store.add(entry(8));
  EXPECT_FALSE(std::filesystem::exists(path_));
  disk.set_value();
  std::promise<void> written;
  writer.post([&] { written.set_value(); });
  written.get_future().wait();
  EXPECT_EQ(KnowledgeStore(directory_.path()).knowledge().entries().size(), 2u);
}

TEST_F(KnowledgeStoreTest, WhatTheWriterDidNotComeToIsWrittenAtTheEnd) {
  auto loop = Loop::create("test");
  WorkThread writer(**loop, "writer");
  std::promise<void> disk;
  writer.post([&, ready = disk.get_future().share()] { ready.wait(); });
  KnowledgeStore(directory_.path(), &writer).add(entry(7));
  EXPECT_TRUE(KnowledgeStore(directory_.path()).find(entry(7).key).has_value());
  disk.set_value();
}

TEST_F(KnowledgeStoreTest, WithoutADirectoryNothingIsKept) {
  KnowledgeStore store("");
  store.add(entry(7));
  EXPECT_TRUE(store.find(entry(7).key).has_value());
}

}  // namespace
}  // namespace braid
