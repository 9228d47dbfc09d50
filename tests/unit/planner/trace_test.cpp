// SPDX-License-Identifier: Apache-2.0
#include "planner/trace.h"

#include <gtest/gtest.h>

#include "tests/unit/planner/shared_data.h"

namespace braid {
namespace {

std::string trace_error(std::string_view text) {
  const auto trace = parse_trace(text, "t.json");
  return trace ? "no error" : trace.status().message();
}

TEST(ParseTrace, ReadsTheShortestForm) {
  const auto trace =
      parse_trace(R"({"names": ["a", "b"], "numel": [3, 5], "tb": [0.25, 0.5]})", "t.json");
  ASSERT_TRUE(trace) << trace.status().message();
  ASSERT_EQ(trace->tensors.size(), 2u);
  EXPECT_EQ(trace->tensors[0], (Trace::Tensor{"a", 3, DataType::Float32, 0.25}));
  EXPECT_EQ(trace->tensors[1].bytes(), 20u);
  EXPECT_EQ(trace->forward_seconds, 0.375) << "half of the backward pass";
}

TEST(ParseTrace, ReadsEverything) {
  const auto trace = parse_trace(
      R"({"model": "m", "names": ["a", "b"], "numel": [3, 5], "tb": [1, 2],
          "dtype": ["float16", "float64"], "forward_seconds": 0, "comm_measured": [1, 2],
          "nworkers": 8, "note": "n", "_mine": {},
          "samples": [{"rank": 1, "step": 7, "forward_seconds": 0.5, "tb": [3, 4]}]})",
      "t.json");
  ASSERT_TRUE(trace) << trace.status().message();
  EXPECT_EQ(trace->model, "m");
  EXPECT_EQ(trace->tensors[0].bytes(), 6u);
  EXPECT_EQ(trace->tensors[1].bytes(), 40u);
  EXPECT_EQ(trace->forward_seconds, 0);
  ASSERT_EQ(trace->samples.size(), 1u);
  EXPECT_EQ(trace->samples[0], (Trace::Sample{1, 7, 0.5, {3, 4}}));
}

TEST(ParseTrace, ReadsWhatToJsonWrites) {
  Trace trace;
  trace.model = "größtes \"Modell\"";
  trace.tensors = {{"a", 3, DataType::Float16, 0.1}, {"b", 5, DataType::Float32, 1.0 / 3}};
  trace.forward_seconds = 1e-9;
  trace.samples = {{0, 1, 0.1, {0.2, 0.3}}, {4'000'000'000, ~uint64_t{0}, 0, {0, 0}}};
  const auto again = parse_trace(to_json(trace), "t.json");
  ASSERT_TRUE(again) << again.status().message();
  EXPECT_EQ(*again, trace);
}

TEST(ToJson, SurvivesNamesThatAreNoText) {
  Trace trace;
  trace.tensors = {{"a\xff", 3, DataType::Float32, 0.1}};
  EXPECT_TRUE(parse_trace(to_json(trace), "t.json"));
}

TEST(ParseTrace, RefusesWhatIsNoTrace) {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"", "t.json: parse error at line 1, column 1"},
      {"[]", "t.json: a list of 0 is no object"},
      {R"({"names": ["a", "b"], "numel": [1, 1], "tb": [1, -1]})",
       "tb[1]: -1 is negative; right is a time in seconds"},
      {R"({"names": ["a", "b"], "numel": [1, 0], "tb": [1, 1]})",
       "numel[1]: 0 is too small; right is the number of elements"},
      {R"({"names": ["a", "a"], "numel": [1, 1], "tb": [1, 1]})",
       "names[1]: \"a\" stands at names[0] too"},
      {R"({"names": ["a"], "tb": [1]})", "numel is missing; right is a list"},
      {R"({"names": ["a"], "numel": [1], "tb": [1]} x)",
       "unexpected 'x'; expected end of input|"
       "invalid literal"},
      {R"({"names": ["a"], "numel": [1], "tb": [NaN]})", "no NaN, no Infinity"},
      {R"({"names": ["a"], "numel": [1], "tb": [Infinity]})", "no NaN, no Infinity"},
      {R"({"names": ["a"], "numel": [1], "tb": [1e999]})", "1e999"},
      {R"({"names": ["a"], "numel": [1], "tb": [1], "tb": [2]})", "\"tb\" stands twice"},
      {R"({"names": ["a"], "numel": [1], "tb": ["1"]})", "tb[0]: \"1\" is no number"},
      {R"({"names": ["a"], "numel": [1], "tb": [null]})", "tb[0]: null is no number"},
      {R"({"names": ["a"], "numel": [1.5], "tb": [1]})", "numel[0]: 1.5 is no integer"},
      {R"({"names": ["a"], "numel": [-1], "tb": [1]})", "numel[0]: -1 is negative"},
      {R"({"names": ["a"], "numel": [99999999999999999999], "tb": [1]})", "too large for one"},
      {R"({"names": ["a"], "numel": [3000000000000000000], "tb": [1]})", "2^63 bytes"},
      {R"({"names": ["a"], "numel": [9223372036854775807], "tb": [1]})", "2^63 bytes"},
      {R"({"names": [""], "numel": [1], "tb": [1]})", "names[0]: \"\" is empty"},
      {R"({"names": [1], "numel": [1], "tb": [1]})", "names[0]: 1 is no string"},
      {R"({"names": [], "numel": [], "tb": []})", "names: a list of 0 is empty"},
      {R"({"names": "a", "numel": [1], "tb": [1]})", "names: \"a\" is no list"},
      {R"({"names": ["a"], "numel": [1, 2], "tb": [1]})", "one entry for each of the 1 names"},
      {R"({"names": ["a"], "numel": [1], "tb": [1], "x": 1})", "\"x\" is not known"},
      {R"({"names": ["a"], "numel": [1], "tb": [1], "dtype": "int7"})", "\"int7\" is no type"},
      {R"({"names": ["a"], "numel": [1], "tb": [1], "dtype": []})", "dtype: a list of 0"},
      {R"({"names": ["a"], "numel": [1], "tb": [1], "forward_seconds": -1})", "forward_seconds"},
      {R"({"names": ["a", "b"], "numel": [1, 1], "tb": [1e308, 1e308]})", "infinite sum"},
      {R"({"names": ["a"], "numel": [1], "tb": [1], "samples": [1]})", "samples[0]: 1 is no obj"},
      {R"({"names": ["a"], "numel": [1], "tb": [1], "samples": [{"rank": 0}]})",
       "samples[0].step is missing"},
      {R"({"names": ["a"], "numel": [1], "tb": [1],
           "samples": [{"rank": 0, "step": 0, "forward_seconds": 0, "tb": [-2]}]})",
       "samples[0].tb[0]: -2 is negative"},
      {"{\"names\": [\"\xff\"], \"numel\": [1], \"tb\": [1]}", "UTF-8"},
  };
  for (const auto& [text, expected] : cases) {
    const std::string error = trace_error(text);
    const size_t bar = expected.find('|');
    const bool fits =
        error.find(expected.substr(0, bar)) != std::string::npos ||
        (bar != std::string::npos && error.find(expected.substr(bar + 1)) != std::string::npos);
    EXPECT_TRUE(fits) << text << "\n  gives: " << error << "\n  expected: " << expected;
    EXPECT_TRUE(error.starts_with("t.json: ")) << error;
  }
}

TEST(ParseTrace, BearsDeepNesting) {
  const std::string deep(100'000, '[');
  EXPECT_NE(trace_error(R"({"_x": )" + deep), "no error");
}

TEST(ParseTrace, RefusesTooManyTensors) {
  std::string names = "\"a\"";
  std::string ones = "1";
  for (size_t i = 0; i < Trace::kTensorsMax; ++i) {
    names += ",\"" + std::to_string(i) + "\"";
    ones += ",1";
  }
  const std::string text =
      fmt::format(R"({{"names": [{}], "numel": [{}], "tb": [{}]}})", names, ones, ones);
  EXPECT_NE(trace_error(text).find("200000 tensors at most"), std::string::npos);
}

TEST(LoadTrace, NamesTheFileThatIsAbsent) {
  const auto trace = load_trace("/nowhere/t.json");
  ASSERT_FALSE(trace);
  EXPECT_TRUE(trace.status().message().starts_with("/nowhere/t.json: "));
}

TEST(LoadTrace, ReadsTheTracesOfTheProject) {
  const std::string root = BRAID_PROJECT_FOLDER;
  for (const char* name :
       {"/traces/googlenet_k80_b64.json", "/docs/planning/counterexample.json"}) {
    const auto trace = load_trace(root + name);
    EXPECT_TRUE(trace) << trace.status().message();
  }
}

TEST(LoadTrace, ReadsPublishedTraces) {
  for (const char* name :
       {"bert_base_b64_synthetic", "googlenet_k80_b64_measured", "resnet50_b64_v100_synthetic"}) {
    const std::string path = shared_data(std::string("traces/") + name + ".json");
    BRAID_SKIP_WITHOUT(path);
    const auto trace = load_trace(path);
    EXPECT_TRUE(trace) << trace.status().message();
  }
}

}  // namespace
}  // namespace braid
