// SPDX-License-Identifier: Apache-2.0
#include "planner/kfac_step.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "tests/unit/planner/kfac_instances.h"

namespace braid {
namespace {

std::string error_of(std::string_view text) {
  return parse_kfac_step(text, "k.json").status().message();
}

// A file of one layer.
std::string with_layer(const std::string& entries) {
  return R"({"layers": [{"name": "fc", "forward": 1, "backward": 2, "gradient_bytes": 8, )" +
         entries + "}]}";
}

constexpr const char* kFactor = R"({"dimension": 2, "compute": 0.5, "invert": 4})";

TEST(KfacStepTest, ReadsAStep) {
  const auto step = parse_kfac_step(
      R"({"model": "tiny", "element_bytes": 2, "_note": "passed over", "layers": [
          {"name": "fc", "forward": 1, "backward": 2, "gradient_bytes": 8,
           "a": {"dimension": 3, "compute": 0.5, "invert": 4},
           "g": {"dimension": 2, "compute": 0.25, "invert": 3}},
          {"name": "norm", "forward": 0, "backward": 0, "gradient_bytes": 0}]})",
      "k.json");
  ASSERT_TRUE(step) << step.status().message();
  KfacStep expected{"tiny", {}, 2};
  expected.layers = {{"fc", 1, 2, 8, KfacStep::Factor{3, 0.5, 4}, KfacStep::Factor{2, 0.25, 3}},
                     {"norm", 0, 0, 0}};
  EXPECT_EQ(*step, expected);
  EXPECT_EQ(step->triangle_bytes(*step->layers[0].a), 12u);
  EXPECT_EQ(step->square_bytes(*step->layers[0].a), 18u);
}

TEST(KfacStepTest, ErrorsNameTheEntry) {
  const std::string both = fmt::format(R"("a": {0}, "g": {0})", kFactor);
  EXPECT_EQ(error_of("{}"),
            "k.json: layers is missing; right is a list of {\"name\", \"forward\", \"backward\", "
            "\"gradient_bytes\"}, and \"a\" and \"g\" if it has factors");
  EXPECT_EQ(error_of(with_layer(fmt::format(R"("a": {})", kFactor))),
            "k.json: layers[0]: an object has a, but no g; right is both factors, or none");
  EXPECT_EQ(error_of(with_layer(R"("a": {"dimension": 0, "compute": 1, "invert": 1})")),
            "k.json: layers[0].a.dimension: 0 is too small; right is an integer from 1 to 1000000");
  EXPECT_EQ(error_of(with_layer(R"("a": {"dimension": 1, "invert": 1})")),
            "k.json: layers[0].a.compute is missing; right is a time in seconds, such as 0.0015");
  EXPECT_EQ(error_of(with_layer(R"("a": {"dimension": 1, "compute": -1, "invert": 1})")),
            "k.json: layers[0].a.compute: -1 is negative; right is a time in seconds, such as "
            "0.0015");
  EXPECT_NE(error_of(with_layer(R"("scale": 1)")).find("layers[0].\"scale\" is not known"),
            std::string::npos);
  EXPECT_NE(error_of(with_layer(R"("_scale": 1)")).find("has no factors"), std::string::npos);
  EXPECT_NE(error_of(R"({"layers": [], "batch": 32})").find("batch"), std::string::npos);
  const std::string layer = with_layer(both).substr(12);
  const std::string twice = R"({"layers": [)" + layer.substr(0, layer.size() - 2) + ", " + layer;
  EXPECT_EQ(error_of(twice),
            "k.json: layers[1].name: \"fc\" stands twice; right is a name that no other layer has");
}

TEST(KfacStepTest, TimesHaveAFiniteSum) {
  const std::string text = R"({"layers": [
      {"name": "one", "forward": 1e308, "backward": 1e308, "gradient_bytes": 0,
       "a": {"dimension": 1, "compute": 0, "invert": 0},
       "g": {"dimension": 1, "compute": 0, "invert": 0}}]})";
  EXPECT_NE(error_of(text).find("has times without a finite sum"), std::string::npos);
}

TEST(KfacStepTest, StreamsAreInTheOrderInWhichTheDeviceMakesThem) {
  const KfacStreams made = streams_of(tiny_kfac_step());
  using Tensors = std::vector<Workload::Tensor>;
  EXPECT_EQ(made.streams[KfacStreams::FactorsA].tensors, (Tensors{{1, 3}, {3, 1}}));
  EXPECT_EQ(made.streams[KfacStreams::Gradients].tensors, (Tensors{{5, 1}, {8, 2}}));
  EXPECT_EQ(made.streams[KfacStreams::FactorsG].tensors, (Tensors{{6, 1}, {9, 1}}));
  EXPECT_EQ(made.passes_end_seconds, 9);
}

TEST(KfacStepTest, InversesAreThoseOfAThenOfG) {
  std::vector<std::string> ids;
  for (const PlacedItem& item : inverses_of(tiny_kfac_step())) ids.push_back(item.id);
  EXPECT_EQ(ids, (std::vector<std::string>{"first.A", "second.A", "first.G", "second.G"}));
}

}  // namespace
}  // namespace braid
