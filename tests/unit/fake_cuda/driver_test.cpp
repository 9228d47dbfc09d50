// SPDX-License-Identifier: Apache-2.0
// Entry points, contexts, settings, capture, processes and what is counted.
#include <array>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>
#include <utility>

#include <cuda.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

#include "driver_testing.h"

namespace fake_cuda_testing {
namespace {

/// The one report in a folder; the folder is removed.
nlohmann::json take_report(const std::string& folder) {
  nlohmann::json report;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    std::ifstream(entry.path()) >> report;
  }
  std::filesystem::remove_all(folder);
  return report;
}

/// A new folder; in the process that the test starts: its test's.
std::string report_folder() {
  if (const char* const inherited = std::getenv("FAKE_CUDA_REPORT")) {
    return inherited;
  }
  std::string folder = (std::filesystem::temp_directory_path() / "fake_cuda.XXXXXX").string();
  EXPECT_NE(mkdtemp(folder.data()), nullptr);
  return folder;
}

void* entry_point(const char* name, int version, CUdriverProcAddressQueryResult* status = nullptr) {
  void* address = nullptr;
  EXPECT_OK(cuGetProcAddress(name, &address, version, 0, status));
  return address;
}

TEST(FakeCuda, EntryPointsAreThoseOfTheVersionThatIsAskedFor) {
  in_process({{"VERSION", "12010"}, {"MISSING", "cuStreamWaitValue32,cuMemFree_v2"}}, [] {
    EXPECT_EQ(entry_point("cuMemAlloc", 12000), reinterpret_cast<void*>(&cuMemAlloc_v2));
    EXPECT_EQ(entry_point("cuMemAlloc_v2", 12000), nullptr);
    EXPECT_EQ(entry_point("cuMemFree", 12000), nullptr);
    auto status = CU_GET_PROC_ADDRESS_SUCCESS;
    EXPECT_EQ(entry_point("cuStreamWaitValue32", 12000, &status), nullptr);
    EXPECT_EQ(status, CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND);
    EXPECT_EQ(entry_point("cuStreamWriteValue32", 11000, &status), nullptr);
    EXPECT_EQ(status, CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT);
    void* const old = entry_point("cuStreamGetCaptureInfo", 10010, &status);
    EXPECT_EQ(status, CU_GET_PROC_ADDRESS_SUCCESS);
    EXPECT_NE(old, nullptr);
    EXPECT_NE(old, entry_point("cuStreamGetCaptureInfo", 12000));
    EXPECT_EQ(entry_point("cuCtxSynchronize", 12000), reinterpret_cast<void*>(&cuCtxSynchronize));
    void* address = nullptr;
    EXPECT_EQ(cuGetProcAddress("cuInit", &address, 12020, 0, nullptr), CUDA_ERROR_INVALID_VALUE);
    int version = 0;
    EXPECT_OK(cuDriverGetVersion(&version));
    EXPECT_EQ(version, 12010);
  });
}

TEST(FakeCuda, ErrorsHaveNames) {
  in_process({}, [] {
    const char* text = nullptr;
    EXPECT_OK(cuGetErrorName(CUDA_ERROR_ILLEGAL_ADDRESS, &text));
    EXPECT_STREQ(text, "CUDA_ERROR_ILLEGAL_ADDRESS");
    EXPECT_OK(cuGetErrorString(CUDA_ERROR_ILLEGAL_ADDRESS, &text));
    EXPECT_STREQ(text, "illegal address");
    EXPECT_EQ(cuGetErrorName(static_cast<CUresult>(12345), &text), CUDA_ERROR_INVALID_VALUE);
  });
}

TEST(FakeCuda, DevicesDiffer) {
  in_process({{"DEVICES", "2"}}, [] {
    int count = 0;
    EXPECT_EQ(cuDeviceGetCount(&count), CUDA_ERROR_NOT_INITIALIZED);
    EXPECT_OK(cuInit(0));
    EXPECT_OK(cuDeviceGetCount(&count));
    EXPECT_EQ(count, 2);
    std::array<CUuuid, 2> uuids{};
    std::array<std::array<char, 32>, 2> places{};
    for (int i = 0; i < 2; ++i) {
      CUdevice device = -1;
      EXPECT_OK(cuDeviceGet(&device, i));
      EXPECT_OK(cuDeviceGetUuid(&uuids[static_cast<std::size_t>(i)], device));
      EXPECT_OK(cuDeviceGetPCIBusId(places[static_cast<std::size_t>(i)].data(), 32, device));
    }
    EXPECT_NE(std::memcmp(&uuids[0], &uuids[1], sizeof(CUuuid)), 0);
    EXPECT_STREQ(places[1].data(), "0000:02:00.0");
    CUdevice none = 0;
    EXPECT_EQ(cuDeviceGet(&none, 2), CUDA_ERROR_INVALID_DEVICE);
  });
}

TEST(FakeCuda, AMachineMayHaveNoDevice) {
  in_process({{"DEVICES", "0"}}, [] { EXPECT_EQ(cuInit(0), CUDA_ERROR_NO_DEVICE); });
}

TEST(FakeCuda, CallsNeedAContext) {
  in_process({{"DEVICES", "2"}}, [] {
    const Program program;
    const CUstream stream = make_stream();
    const CUdeviceptr device = make_device_memory(64);
    CUcontext context = nullptr;
    EXPECT_OK(cuCtxPopCurrent(&context));
    EXPECT_EQ(context, program.context);
    EXPECT_EQ(cuCtxPopCurrent(&context), CUDA_ERROR_INVALID_CONTEXT);
    EXPECT_EQ(cuMemsetD8Async(device, 0, 64, stream), CUDA_ERROR_INVALID_CONTEXT);
    EXPECT_EQ(cuStreamSynchronize(stream), CUDA_ERROR_INVALID_CONTEXT);
    EXPECT_OK(cuStreamGetCtx(stream, &context));
    EXPECT_EQ(context, program.context);
    CUcontext second = nullptr;
    EXPECT_OK(cuDevicePrimaryCtxRetain(&second, 1));
    EXPECT_OK(cuCtxSetCurrent(second));
    EXPECT_EQ(cuMemsetD8Async(device, 0, 64, stream), CUDA_ERROR_INVALID_CONTEXT);
    EXPECT_EQ(cuEventRecord(make_event(), stream), CUDA_ERROR_INVALID_HANDLE);
    EXPECT_OK(cuStreamSynchronize(stream));
  });
}

TEST(FakeCuda, StaleHandlesAreFound) {
  in_process({}, [] {
    const Program program;
    const CUstream stream = make_stream();
    const CUevent event = make_event();
    Gate gate;
    gate.hold(stream);
    EXPECT_OK(cuEventRecord(event, stream));
    EXPECT_OK(cuStreamDestroy(stream));  // what is queued goes on
    EXPECT_EQ(cuStreamQuery(stream), CUDA_ERROR_INVALID_HANDLE);
    EXPECT_EQ(cuStreamDestroy(stream), CUDA_ERROR_INVALID_HANDLE);
    EXPECT_EQ(cuEventQuery(event), CUDA_ERROR_NOT_READY);
    gate.open();
    EXPECT_OK(cuEventSynchronize(event));
    EXPECT_OK(cuEventDestroy(event));
    EXPECT_EQ(cuEventQuery(event), CUDA_ERROR_INVALID_HANDLE);
    EXPECT_EQ(counts().streams + counts().events, 0U);
  });
}

TEST(FakeCuda, TheLastReleaseEndsAllThatAContextHas) {
  in_process({}, [] {
    const Program program;
    const CUstream stream = make_stream();
    make_device_memory(64);
    Word word;
    EXPECT_OK(cuStreamWaitValue32(stream, word.address, 1, 0));
    EXPECT_OK(cuDevicePrimaryCtxRelease(0));
    EXPECT_EQ(cuDevicePrimaryCtxRelease(0), CUDA_ERROR_INVALID_CONTEXT);
    EXPECT_EQ(cuStreamQuery(stream), CUDA_ERROR_CONTEXT_IS_DESTROYED);
    const auto left = counts();
    EXPECT_EQ(
        left.contexts + left.streams + left.allocations + left.registrations + left.pending_works,
        0U);
    CUcontext again = nullptr;
    EXPECT_OK(cuDevicePrimaryCtxRetain(&again, 0));
    EXPECT_EQ(cuStreamQuery(stream), CUDA_ERROR_INVALID_HANDLE);
    EXPECT_OK(cuStreamSynchronize(make_stream()));
  });
}

TEST(FakeCuda, TheCallThatIsChosenFails) {
  in_process({{"FAIL", "cuMemAlloc:2:2,cuCtxSynchronize:1"}}, [] {
    const Program program;
    CUdeviceptr address = 0;
    EXPECT_OK(cuMemAlloc(&address, 64));
    EXPECT_EQ(cuMemAlloc(&address, 64), CUDA_ERROR_OUT_OF_MEMORY);
    EXPECT_OK(cuMemAlloc(&address, 64));
    EXPECT_EQ(cuCtxSynchronize(), CUDA_ERROR_UNKNOWN);
    EXPECT_OK(cuCtxSynchronize());
  });
}

TEST(FakeCuda, ADeviceThatFailsEndsItsWork) {
  in_process({}, [] {
    const Program program;
    const CUstream stream = make_stream();
    const Word word;
    EXPECT_OK(cuStreamWaitValue32(stream, word.address, 1, 0));
    fake_cuda_fail_device(0, CUDA_ERROR_ECC_UNCORRECTABLE);
    EXPECT_EQ(cuStreamSynchronize(stream), CUDA_ERROR_ECC_UNCORRECTABLE);
    EXPECT_EQ(cuCtxSynchronize(), CUDA_ERROR_ECC_UNCORRECTABLE);
  });
}

TEST(FakeCuda, ADeviceMayLackWords) {
  in_process({{"WORDS", "no"}}, [] {
    const Program program;
    const Word word;
    int value = -1;
    EXPECT_OK(cuDeviceGetAttribute(&value, CU_DEVICE_ATTRIBUTE_CAN_USE_64_BIT_STREAM_MEM_OPS, 0));
    EXPECT_EQ(value, 0);
    EXPECT_EQ(cuStreamWriteValue32(make_stream(), word.address, 1, 0), CUDA_ERROR_NOT_SUPPORTED);
  });
}

TEST(FakeCuda, BadSettingsEndTheProcess) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  for (const auto& [name, value, right] : std::vector<std::array<const char*, 3>>{
           {"FAKE_CUDA_QUEUE", "1", "settings.h"},
           {"FAKE_CUDA_QUEUES", "0", "1 to 64"},
           {"FAKE_CUDA_DEPTH", "8x", "1 to 65536"},
           {"FAKE_CUDA_FREE", "lock", "waits, locks or now"},
           {"FAKE_CUDA_FAIL", "cuMemAllocate:1", "a function of the library"},
           {"FAKE_CUDA_FAIL", "cuMemAlloc", "FUNCTION:CALL"},
       }) {
    setenv(name, value, 1);
    EXPECT_DEATH(cuInit(0), std::string(name) + "='" + value + "': right is .*" + right);
    unsetenv(name);
  }
}

TEST(FakeCuda, ACaptureForbidsUnsafeCalls) {
  in_process({}, [] {
    const Program program;
    const CUstream stream = make_stream();
    const CUdeviceptr device = make_device_memory(64);
    CUgraph graph = nullptr;
    cuuint64_t id = 0;
    auto status = CU_STREAM_CAPTURE_STATUS_NONE;
    EXPECT_OK(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
    EXPECT_OK(cuStreamGetCaptureInfo(stream, &status, &id, nullptr, nullptr, nullptr, nullptr));
    EXPECT_EQ(status, CU_STREAM_CAPTURE_STATUS_ACTIVE);
    EXPECT_OK(cuMemsetD8Async(device, 1, 64, stream));  // captured, not done
    EXPECT_EQ(counts().pending_works, 0U);
    auto mode = CU_STREAM_CAPTURE_MODE_RELAXED;
    EXPECT_OK(cuThreadExchangeStreamCaptureMode(&mode));
    EXPECT_OK(cuMemFree(make_device_memory(64)));
    EXPECT_OK(cuThreadExchangeStreamCaptureMode(&mode));
    EXPECT_OK(cuStreamEndCapture(stream, &graph));

    EXPECT_OK(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
    CUdeviceptr address = 0;
    EXPECT_EQ(cuMemAlloc(&address, 64), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    EXPECT_OK(cuStreamIsCapturing(stream, &status));
    EXPECT_EQ(status, CU_STREAM_CAPTURE_STATUS_INVALIDATED);
    EXPECT_EQ(cuStreamEndCapture(stream, &graph), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
    EXPECT_OK(cuStreamSynchronize(stream));
  });
}

TEST(FakeCuda, AStreamJoinsACaptureByItsEvent) {
  in_process({}, [] {
    const Program program;
    const CUstream one = make_stream(), two = make_stream();
    const CUevent event = make_event();
    auto status = CU_STREAM_CAPTURE_STATUS_NONE;
    EXPECT_OK(cuStreamBeginCapture(one, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
    EXPECT_OK(cuEventRecord(event, one));
    EXPECT_OK(cuStreamWaitEvent(two, event, 0));
    EXPECT_OK(cuStreamIsCapturing(two, &status));
    EXPECT_EQ(status, CU_STREAM_CAPTURE_STATUS_ACTIVE);
    EXPECT_EQ(cuEventQuery(event), CUDA_ERROR_CAPTURED_EVENT);
    CUgraph graph = nullptr;
    EXPECT_OK(cuStreamEndCapture(one, &graph));
    EXPECT_OK(cuStreamIsCapturing(two, &status));
    EXPECT_EQ(status, CU_STREAM_CAPTURE_STATUS_NONE);
  });
}

TEST(FakeCuda, AChildOfTheProcessHasNoDriver) {
  in_process({}, [] {
    const Program program;
    const pid_t child = fork();
    if (child == 0) {
      int count = 0;
      _exit(cuInit(0) == CUDA_ERROR_NOT_INITIALIZED &&
                    cuDeviceGetCount(&count) == CUDA_ERROR_NOT_INITIALIZED
                ? 0
                : 1);
    }
    int status = -1;
    EXPECT_EQ(waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
  });
}

TEST(FakeCuda, CallsAreCountedByThread) {
  in_process({}, [] {
    const Program program;
    const std::uint64_t before = counts().calls;
    EXPECT_EQ(before, 3U);
    int id = 0;
    std::thread([&] {
      id = gettid();
      int count = 0;
      EXPECT_OK(cuDeviceGetCount(&count));
      EXPECT_OK(cuDeviceGetCount(&count));
    }).join();
    EXPECT_EQ(fake_cuda_calls_of(id), 2U);
    EXPECT_EQ(fake_cuda_calls_of(gettid()), 3U);
    EXPECT_EQ(counts().calls, 5U);
  });
}

TEST(FakeCuda, AProcessThatEndsWhileAStreamWaitsReportsIt) {
  const std::string folder = report_folder();
  in_process({{"REPORT", folder}}, [] {
    pthread_setname_np(pthread_self(), "trainer");
    const Program program;
    const CUstream stream = make_stream();
    static const Word word;  // it outlives its stream
    std::thread([&] {
      pthread_setname_np(pthread_self(), "copier");
      EXPECT_OK(cuCtxSetCurrent(program.context));
    }).join();
    EXPECT_OK(cuStreamWaitValue32(stream, word.address, 1, 0));
    EXPECT_TRUE(wait_until([] { return counts().waiting_streams == 1; }));
  });
  const nlohmann::json report = take_report(folder);
  EXPECT_EQ(report.at("waiting_at_exit"), 1);
  EXPECT_EQ(report.at("pending_works"), 1);
  nlohmann::json by_name;
  for (const auto& thread : report.at("threads")) by_name[thread.at("name")] = thread.at("calls");
  EXPECT_EQ(by_name.at("trainer").at("cuStreamWaitValue32_v2"), 1);
  EXPECT_EQ(by_name.at("copier").at("cuCtxSetCurrent"), 1);
}

}  // namespace
}  // namespace fake_cuda_testing
