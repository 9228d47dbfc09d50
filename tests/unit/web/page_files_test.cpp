// SPDX-License-Identifier: Apache-2.0
#include "web/page_files.h"

#include <regex>
#include <set>
#include <string>

#include <gtest/gtest.h>

namespace braid {
namespace {

std::set<std::string> paths() {
  std::set<std::string> found;
  for (const PageFile& file : page_files()) found.emplace(file.path);
  return found;
}

TEST(PageFiles, ArePutInWhole) {
  const std::set<std::string> found = paths();
  for (const char* path : {"/", "/page.css", "/page.js", "/icon.svg"})
    EXPECT_TRUE(found.contains(path)) << path;
  for (const PageFile& file : page_files()) {
    EXPECT_FALSE(file.content.empty()) << file.path;
    EXPECT_EQ(file.content.back(), '\n') << file.path;
    EXPECT_TRUE(file.content_type.ends_with("; charset=utf-8")) << file.path;
  }
}

// Nothing from elsewhere, and nothing that the content security policy would refuse.
TEST(PageFiles, NeedNothingThatIsNotServed) {
  const std::set<std::string> found = paths();
  const std::regex reference(R"re((?:src|href)="(/[^"]*)"|from "\.(/[^"]*)")re");
  for (const PageFile& file : page_files()) {
    const std::string text(file.content);
    for (std::sregex_iterator at(text.begin(), text.end(), reference), end; at != end; ++at) {
      const std::string path = (*at)[1].matched ? (*at)[1].str() : (*at)[2].str();
      EXPECT_TRUE(found.contains(path)) << file.path << " wants " << path;
    }
    EXPECT_EQ(text.find("https://"), std::string::npos) << file.path;
    for (const char* unsafe : {"innerHTML", "outerHTML", "insertAdjacentHTML", "document.write",
                               "eval(", "style=\"", " onclick=\""})
      EXPECT_EQ(text.find(unsafe), std::string::npos) << file.path << " has " << unsafe;
  }
}

}  // namespace
}  // namespace braid
