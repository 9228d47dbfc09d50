// SPDX-License-Identifier: Apache-2.0
// Holds the documents against the table of keys. BRAID_UPDATE_DOCUMENTS=1 writes them instead.
#include <cstdlib>
#include <fstream>
#include <sstream>

#include <gtest/gtest.h>

#include "config/print.h"

namespace braid {
namespace {

constexpr const char* kHowToUpdate = "run BRAID_UPDATE_DOCUMENTS=1 config_test to write it anew";

std::string read(const std::string& path) {
  std::ifstream file(path);
  EXPECT_TRUE(file.good()) << path;
  std::ostringstream content;
  content << file.rdbuf();
  return content.str();
}

void expect_content(const std::string& path, const std::string& current,
                    const std::string& expected) {
  if (std::getenv("BRAID_UPDATE_DOCUMENTS") != nullptr) {
    std::ofstream(path) << expected;
    return;
  }
  EXPECT_EQ(current, expected) << path << ": " << kHowToUpdate;
}

TEST(Documents, ConfigurationPageMatchesTheTable) {
  const std::string path = BRAID_SOURCE_DIR "/docs/configuration.md";
  const std::string begin = "<!-- keys: begin -->\n";
  const std::string end = "<!-- keys: end -->";
  const std::string page = read(path);
  const size_t first = page.find(begin);
  const size_t last = page.find(end);
  ASSERT_NE(first, std::string::npos);
  ASSERT_NE(last, std::string::npos);
  expect_content(
      path, page,
      page.substr(0, first + begin.size()) + print_config_markdown() + page.substr(last));
}

TEST(Documents, ExampleFileMatchesTheTable) {
  const std::string path = BRAID_SOURCE_DIR "/packaging/braidd.yaml";
  expect_content(path, read(path), print_example_config());
}

}  // namespace
}  // namespace braid
