// SPDX-License-Identifier: Apache-2.0
#include "gpu/gpu_reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "gpu/fake_nvml_file.h"

namespace braid::testing {
namespace {

using ::testing::HasSubstr;

std::unique_ptr<GpuReader> reader_of(const char* library = FAKE_NVML) {
  auto functions = load_nvml(library);
  EXPECT_TRUE(functions) << functions.status().message();
  auto reader = GpuReader::create(*functions, {});
  EXPECT_TRUE(reader) << reader.status().message();
  return std::move(reader).value();
}

std::vector<std::string> reasons_for(unsigned int bits) {
  const FakeNvmlFile file(fmt::format("gpus 1\n0 reasons {}\n", bits));
  const GpuReader::Reading reading = reader_of()->read();
  std::vector<std::string> names;
  for (const GpuFacts::Reason& reason : reading.gpus.front().reasons) names.push_back(reason.name);
  return names;
}

TEST(LoadNvml, SaysThatThereIsNoLibrary) {
  const auto functions = load_nvml("libbraid-has-no-such.so.1");
  EXPECT_EQ(functions.status().code(), StatusCode::NotFound);
  EXPECT_THAT(functions.status().message(), HasSubstr("libbraid-has-no-such.so.1"));
}

TEST(LoadNvml, RefusesALibraryThatIsSomethingElse) {
  const auto functions = load_nvml("libm.so.6");
  EXPECT_EQ(functions.status().code(), StatusCode::Unavailable);
  EXPECT_THAT(functions.status().message(), HasSubstr("has no nvmlInit_v2"));
}

TEST(LoadNvml, TakesAnOldLibraryWithoutTheFunctionsThatCameLater) {
  const auto functions = load_nvml(FAKE_NVML_OLD);
  ASSERT_TRUE(functions);
  EXPECT_EQ(functions->processes, nullptr);
  EXPECT_EQ(functions->event_set_wait, nullptr);
  EXPECT_NE(functions->clock_reasons, nullptr) << "it has another name there";
}

TEST(GpuReader, SaysWhyTheLibraryDoesNotBegin) {
  const FakeNvmlFile file("fail nvmlInit_v2 9\n");
  const auto reader = GpuReader::create(*load_nvml(FAKE_NVML), {});
  EXPECT_EQ(reader.status().code(), StatusCode::Unavailable);
  EXPECT_THAT(reader.status().message(), HasSubstr("Driver Not Loaded"));
}

TEST(GpuReader, ReadsWhatAGpuTells) {
  const FakeNvmlFile file(
      "gpus 2\n"
      "1 name NVIDIA H100\n"
      "1 clock 1140\n"
      "1 temperature 91\n"
      "1 ecc_corrected 3\n"
      "1 ecc_uncorrected 1\n"
      "1 pcie_width 8\n"
      "1 pcie_replays 7\n"
      "1 processes 4711:1048576 4712\n");
  const GpuReader::Reading reading = reader_of()->read();
  ASSERT_EQ(reading.gpus.size(), 2u);
  const GpuFacts& gpu = reading.gpus[1];
  EXPECT_EQ(gpu.index, 1u);
  EXPECT_EQ(gpu.name, "NVIDIA H100");
  EXPECT_EQ(gpu.uuid, "GPU-fake-1");
  EXPECT_EQ(gpu.pci, "0000:18:00.0");
  EXPECT_EQ(gpu.error, "");
  EXPECT_EQ(gpu.clock_mhz, 1140u);
  EXPECT_EQ(gpu.clock_max_mhz, 1980u);
  EXPECT_EQ(gpu.temperature_celsius, 91);
  EXPECT_DOUBLE_EQ(gpu.power_watts, 300);
  EXPECT_DOUBLE_EQ(gpu.power_limit_watts, 700);
  EXPECT_DOUBLE_EQ(gpu.utilization, 0.95);
  EXPECT_EQ(gpu.memory_bytes, 80ull << 30);
  EXPECT_EQ(gpu.ecc_corrected, 3);
  EXPECT_EQ(gpu.ecc_uncorrected, 1);
  EXPECT_EQ(gpu.pcie_generation, 5u);
  EXPECT_EQ(gpu.pcie_width, 8u);
  EXPECT_EQ(gpu.pcie_width_max, 16u);
  EXPECT_EQ(gpu.pcie_replays, 7);
  ASSERT_EQ(gpu.processes.size(), 2u);
  EXPECT_EQ(gpu.processes[0].pid, 4711);
  EXPECT_EQ(gpu.processes[0].memory_bytes, 1u << 20);
  EXPECT_EQ(gpu.processes[1].memory_bytes, 0u);
  EXPECT_TRUE(reading.gpus[0].processes.empty());
}

TEST(GpuReader, LeavesOpenWhatACardDoesNotTell) {
  const FakeNvmlFile file(
      "gpus 1\n"
      "fail nvmlDeviceGetTotalEccErrors 3\n"
      "fail nvmlDeviceGetTemperature 3\n"
      "fail nvmlDeviceGetClockInfo 3\n"
      "fail nvmlDeviceGetUtilizationRates 4\n");
  const GpuFacts gpu = reader_of()->read().gpus.front();
  EXPECT_EQ(gpu.error, "");
  EXPECT_EQ(gpu.ecc_corrected, -1);
  EXPECT_EQ(gpu.ecc_uncorrected, -1);
  EXPECT_EQ(gpu.temperature_celsius, -1);
  EXPECT_EQ(gpu.clock_mhz, 0u);
  EXPECT_LT(gpu.utilization, 0);
  EXPECT_EQ(gpu.clock_max_mhz, 1980u);
}

TEST(GpuReader, ReadsWhatAnOldLibraryHas) {
  const FakeNvmlFile file("gpus 1\n0 reasons 0x40\n0 processes 1\n0 xid 79\n");
  const GpuReader::Reading reading = reader_of(FAKE_NVML_OLD)->read();
  ASSERT_EQ(reading.gpus.size(), 1u);
  EXPECT_NE(reading.gpus[0].find_reason(kSlowedByHeat), nullptr);
  EXPECT_TRUE(reading.gpus[0].processes.empty());
  EXPECT_TRUE(reading.xids.empty());
}

TEST(GpuReader, TellsOfALostGpuAndReadsTheOthers) {
  const FakeNvmlFile file("gpus 2\n");
  const auto reader = reader_of();
  file.write("gpus 2\n0 lost 15\n1 clock 1000\n");
  const GpuReader::Reading reading = reader->read();
  EXPECT_EQ(reading.gpus[0].error, "GPU is lost");
  EXPECT_EQ(reading.gpus[0].uuid, "GPU-fake-0");
  EXPECT_EQ(reading.gpus[0].clock_max_mhz, 0u) << "nothing half read";
  EXPECT_EQ(reading.gpus[1].error, "");
  EXPECT_EQ(reading.gpus[1].clock_mhz, 1000u);
}

TEST(GpuReader, ListsAGpuThatIsLostFromTheBeginning) {
  const FakeNvmlFile file("gpus 2\n1 lost 15\n");
  const GpuReader::Reading reading = reader_of()->read();
  ASSERT_EQ(reading.gpus.size(), 2u);
  EXPECT_EQ(reading.gpus[1].error, "GPU is lost");
}

TEST(GpuReader, TellsEachXidOnce) {
  const FakeNvmlFile file("gpus 2\n1 xid 48\n");
  const auto reader = reader_of();
  GpuReader::Reading reading = reader->read();
  ASSERT_EQ(reading.xids.size(), 1u);
  EXPECT_EQ(reading.xids[0].gpu, 1u);
  EXPECT_EQ(reading.xids[0].number, 48u);
  EXPECT_TRUE(reader->read().xids.empty());
  file.write("gpus 2\n1 xid 48 79\n");
  reading = reader->read();
  ASSERT_EQ(reading.xids.size(), 1u);
  EXPECT_EQ(reading.xids[0].number, 79u);
}

TEST(GpuReader, NamesTheReasonsOfALowClock) {
  using ::testing::ElementsAre;
  EXPECT_THAT(reasons_for(0), ElementsAre());
  EXPECT_THAT(reasons_for(0x1), ElementsAre("idle"));
  EXPECT_THAT(reasons_for(0x20), ElementsAre("heat"));
  EXPECT_THAT(reasons_for(0x48), ElementsAre("heat")) << "the hardware says why it slows down";
  EXPECT_THAT(reasons_for(0x88), ElementsAre("power_brake"));
  EXPECT_THAT(reasons_for(0x8), ElementsAre("hardware"));
  EXPECT_THAT(reasons_for(0x4 | 0x20), ElementsAre("heat", "power_cap"));
  EXPECT_THAT(reasons_for(0x2), ElementsAre("setting"));
}

}  // namespace
}  // namespace braid::testing
