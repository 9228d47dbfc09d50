// SPDX-License-Identifier: Apache-2.0
#include "gpu/gpu_watch.h"

#include <chrono>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>

#include <gtest/gtest.h>

#include "gpu/fake_nvml_file.h"

namespace braid::testing {
namespace {

GpuWatchOptions fake(uint32_t again_ms = 20) { return {FAKE_NVML, 5, again_ms, {}}; }

// The first report of which `is_so` holds; a minute at most.
template <typename Condition>
GpuReport report_when(const GpuWatch& watch, Condition is_so) {
  const auto until = std::chrono::steady_clock::now() + std::chrono::minutes(1);
  GpuReport report = watch.report();
  while (!is_so(report) && std::chrono::steady_clock::now() < until) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    report = watch.report();
  }
  EXPECT_TRUE(is_so(report));
  return report;
}

size_t threads_of_watches() {
  size_t threads = 0;
  for (const auto& task : std::filesystem::directory_iterator("/proc/self/task")) {
    std::string name;
    std::getline(std::ifstream(task.path() / "comm"), name);
    threads += name == "braid-gpus" ? 1 : 0;
  }
  return threads;
}

bool has_read(const GpuReport& report) { return report.readings != 0; }

TEST(GpuWatch, WithoutALibraryThereAreNoGpus) {
  const GpuWatch watch({"libbraid-has-no-such.so.1", 1, 1, {}});
  EXPECT_TRUE(watch.report().gpus.empty());
}

TEST(GpuWatch, ReadsAgainAndAgain) {
  const FakeNvmlFile file("gpus 1\n0 clock 1500\n");
  const GpuWatch watch(fake());
  EXPECT_EQ(report_when(watch, has_read).gpus.at(0).clock_mhz, 1500u);
  file.write("gpus 1\n0 clock 1400\n");
  report_when(watch, [](const GpuReport& report) { return report.gpus.at(0).clock_mhz == 1400; });
}

TEST(GpuWatch, TriesALibraryAgainThatDoesNotBegin) {
  const FakeNvmlFile file("fail nvmlInit_v2 9\n");
  const GpuWatch watch(fake());
  file.write("gpus 1\n");
  EXPECT_EQ(report_when(watch, has_read).gpus.size(), 1u);
}

TEST(GpuWatch, BeginsAnewWhileAGpuIsLost) {
  const FakeNvmlFile file("gpus 2\n1 lost 15\n");
  const GpuWatch watch(fake());
  EXPECT_EQ(report_when(watch, has_read).gpus.at(1).name, "");
  file.write("gpus 2\n");
  const GpuReport report =
      report_when(watch, [](const GpuReport& now) { return now.gpus.at(1).error.empty(); });
  EXPECT_EQ(report.gpus[1].name, "NVIDIA Fake 80GB") << "read when the library began";
}

TEST(GpuWatch, AnswersAndEndsWhileTheLibraryHangs) {
  const FakeNvmlFile file("gpus 1\n");
  {
    const GpuWatch watch(fake());
    const uint64_t before = report_when(watch, has_read).readings;
    file.write("gpus 1\nhang 1\n");
    // Two readings may have been under way or finished before the file was changed.
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    const GpuReport report = watch.report();
    EXPECT_GE(report.readings, before);
    EXPECT_EQ(report.gpus.size(), 1u) << "what was read last";
  }
  file.write("gpus 1\n");
  // The thread that was left behind ends by itself; the file must not go before.
  const auto until = std::chrono::steady_clock::now() + std::chrono::minutes(1);
  while (threads_of_watches() != 0 && std::chrono::steady_clock::now() < until)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  EXPECT_EQ(threads_of_watches(), 0u);
}

}  // namespace
}  // namespace braid::testing
