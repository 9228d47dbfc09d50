// SPDX-License-Identifier: Apache-2.0
#include "planner/update_method.h"

#include <sstream>

#include <gtest/gtest.h>

#include "base/errors_testing.h"

namespace braid {
namespace {

using testing::names;

using Methods = std::vector<UpdateMethod>;

Methods methods_of(std::string_view text) {
  const auto methods = parse_update_methods(text);
  EXPECT_TRUE(methods) << methods.status().message();
  return methods ? *methods : Methods{};
}

std::string method_error_of(std::string_view text) {
  const auto methods = parse_update_methods(text);
  EXPECT_FALSE(methods) << text;
  return methods ? std::string() : methods.status().message();
}

TEST(ParseUpdateMethods, ReadsEachMethod) {
  EXPECT_EQ(methods_of("sync"), (Methods{{UpdateKind::Sync}}));
  EXPECT_EQ(methods_of("sharded"), (Methods{{UpdateKind::Sharded}}));
  EXPECT_EQ(methods_of("od-sgd"), (Methods{{UpdateKind::OdSgd}}));
  EXPECT_EQ(methods_of("ssd-sgd:4"), (Methods{{UpdateKind::SsdSgd, 4}}));
  EXPECT_EQ(methods_of("cd-sgd:10000"), (Methods{{UpdateKind::CdSgd, 10'000}}));
  EXPECT_EQ(methods_of("acco"), (Methods{{UpdateKind::Acco}}));
  EXPECT_EQ(methods_of("diloco:1"), (Methods{{UpdateKind::DiLoCo, 1}}));
  EXPECT_EQ(methods_of("diloco:8,overlap=8"), (Methods{{UpdateKind::DiLoCo, 8, 8, 1}}));
  EXPECT_EQ(methods_of("diloco:8,fragments=4,overlap=2"), (Methods{{UpdateKind::DiLoCo, 8, 2, 4}}));
}

TEST(ParseUpdateMethods, GivesParametersToTheMethodBeforeThem) {
  EXPECT_EQ(
      methods_of("diloco:8,overlap=2,od-sgd,diloco:8,fragments=4"),
      (Methods{{UpdateKind::DiLoCo, 8, 2, 1}, {UpdateKind::OdSgd}, {UpdateKind::DiLoCo, 8, 0, 4}}));
}

TEST(ParseUpdateMethods, ReadsWhatToStringWrites) {
  for (const char* text : {"sync", "sharded", "od-sgd", "ssd-sgd:1", "cd-sgd:5", "acco",
                           "diloco:500", "diloco:9,overlap=9", "diloco:9,overlap=2,fragments=3"}) {
    EXPECT_EQ(to_string(methods_of(text).front()), text);
  }
  EXPECT_EQ(to_string(methods_of("diloco:9,fragments=1,overlap=0").front()), "diloco:9");
}

TEST(ParseUpdateMethods, ErrorsListWhatIsRight) {
  std::istringstream texts(
      "| |sgd|Sync|sync |sync,|,sync|sync:1|sharded:2|od-sgd:1|acco:2|acco,overlap=1|ssd-sgd|"
      "ssd-sgd:|ssd-sgd:0|ssd-sgd:-1|ssd-sgd:+1|ssd-sgd: 4|ssd-sgd:4x|ssd-sgd:4:4|ssd-sgd:10001|"
      "ssd-sgd:99999999999|ssd-sgd:4,overlap=1|cd-sgd|cd-sgd:0|diloco|diloco:0|diloco:4,overlap|"
      "diloco:4,overlap=|diloco:4,overlap=5|diloco:4,overlap=-1|diloco:4,overlap=1x|"
      "diloco:4,fragments=0|diloco:4,fragments=5|diloco:4,delay=1|diloco:4,overlap=1,overlap=1|"
      "overlap=1|sync,fragments=1");
  for (std::string text; std::getline(texts, text, '|');)
    EXPECT_TRUE(names(method_error_of(text), {"sync", "sharded", "od-sgd", "ssd-sgd:K", "cd-sgd:K",
                                              "acco", "diloco:H[,overlap=T][,fragments=F]"}));
}

TEST(ParseUpdateMethods, ErrorsNameWhatIsWrong) {
  EXPECT_TRUE(names(method_error_of("sync,ssd"), {"'ssd': no method has this name"}));
  EXPECT_TRUE(names(method_error_of("ssd-sgd:0"), {"'ssd-sgd:0': '0' is no number of steps"}));
  EXPECT_TRUE(names(method_error_of("diloco"), {"'diloco': the number of steps is missing"}));
  EXPECT_TRUE(names(method_error_of("sync:3"), {"'sync:3': sync has no number of steps"}));
  EXPECT_TRUE(names(method_error_of("diloco:4,overlap=5"),
                    {"'diloco:4,overlap=5': overlap: '5'", "0 to 4"}));
  EXPECT_TRUE(names(method_error_of("cd-sgd:4,overlap=1"), {"'cd-sgd:4,overlap=1'", "parameter"}));
}

TEST(ParseUpdateMethods, RefusesTheSameMethodTwice) {
  EXPECT_EQ(method_error_of("sync,od-sgd,sync"),
            "update method 'sync' stands twice; right is each of them once");
  EXPECT_EQ(method_error_of("diloco:4,diloco:4,overlap=0"),
            "update method 'diloco:4,overlap=0' stands twice; right is each of them once");
  EXPECT_EQ(methods_of("ssd-sgd:2,ssd-sgd:4").size(), 2u);
}

}  // namespace
}  // namespace braid
