// SPDX-License-Identifier: Apache-2.0
#include "rank.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <deque>
#include <memory>
#include <optional>
#include <stdexcept>
#include <thread>

#include <cuda.h>
#include <unistd.h>

#include "fake_cuda/fake_cuda.h"
#include "values.h"

namespace braid::device_programs {
namespace {

constexpr uint32_t kTimeoutMs = 60'000;

struct Fault : std::runtime_error {
  using std::runtime_error::runtime_error;
};

void cuda(CUresult result, const char* what) {
  if (result == CUDA_SUCCESS) return;
  const char* name = "?";
  (void)cuGetErrorName(result, &name);
  throw Fault(std::string(what) + ": " + name);
}

void braid(int error, const std::string& what) {
  if (error != BRAID_OK) throw Fault(what + ": " + braid_error_message());
}

// One step on this rank: its memory, and what its streams do with it.
class Running {
 public:
  Running(const Program& program, size_t step, uint32_t rank)
      : step_(program.steps[step]),
        name_("step " + std::to_string(step)),
        input_values_(input_of(program, step, rank)),
        expected_(result_of(program, step, rank)) {
    const size_t input_bytes = input_values_.size();
    const size_t result_bytes = expected_.size();
    if (step_.is_in_place) {
      input_ = result_ = allocate(std::max(input_bytes, result_bytes));
      if (step_.collective == BRAID_ALL_GATHER) input_ += rank * input_bytes;
      return;
    }
    input_ = allocate(input_bytes);
    if (!step_.are_results_apart) {
      result_ = allocate(result_bytes);
      return;
    }
    const size_t size = program.groups[step_.group].size();
    for (size_t i = 0; i < size; ++i) results_.push_back(allocate(result_bytes / size));
  }

  const Step& step() const { return step_; }
  const std::string& name() const { return name_; }

  // Queues what computes the input.
  void compute(CUstream stream) {
    cuda(static_cast<CUresult>(fake_cuda_launch(
             stream, [](void* self) { static_cast<Running*>(self)->fill(); }, this)),
         "a kernel");
  }

  void submit(braid_job* job, uint32_t tensor, const Program& program, uint32_t rank,
              CUstream stream) {
    const auto size = static_cast<uint32_t>(program.groups[step_.group].size());
    std::vector<uint64_t> given;
    std::vector<uint64_t> got;
    for (uint32_t other = 0; other < size; ++other) {
      given.push_back(split_of(step_, rank, other));
      got.push_back(split_of(step_, other, rank));
    }
    braid_operation operation{};
    operation.struct_size = sizeof(operation);
    operation.collective = step_.collective;
    operation.tensor = tensor;
    operation.reduction = step_.reduction;
    operation.root = step_.root;
    operation.dtype = step_.dtype;
    operation.count = step_.count;
    if (step_.has_splits) {
      operation.input_splits = given.data();
      operation.output_splits = got.data();
    }
    braid_device_buffers buffers{};
    buffers.struct_size = sizeof(buffers);
    buffers.input = input_values_.empty() ? 0 : input_;
    buffers.result = expected_.empty() ? 0 : result_;
    if (!results_.empty()) {
      buffers.result_of_rank = reinterpret_cast<const uint64_t*>(results_.data());
    }
    buffers.stream = stream;
    buffers.flags = step_.stream_waits ? BRAID_DEVICE_STREAM_WAITS : 0;
    braid(braid_submit_device(job, &operation, &buffers, &ticket_), name_);
    job_ = job;
  }

  // Lets the stream wait for the results, and then look at them.
  void check(CUstream stream) {
    braid(braid_stream_wait(job_, ticket_, stream), name_ + " is waited for");
    cuda(static_cast<CUresult>(fake_cuda_launch(
             stream, [](void* self) { static_cast<Running*>(self)->compare(); }, this)),
         "a kernel");
    if (step_.is_released_early) release();
  }
  void release() {
    if (ticket_ == 0) return;
    braid(braid_device_release(job_, std::exchange(ticket_, 0)), name_ + " is released");
  }

  bool is_checked() const { return is_checked_; }
  const std::string& fault() const { return fault_; }

  void free() {
    for (const CUdeviceptr memory : std::exchange(memory_, {}))
      cuda(cuMemFree(memory), "cuMemFree");
  }

 private:
  CUdeviceptr allocate(size_t bytes) {
    CUdeviceptr memory = 0;
    cuda(cuMemAlloc(&memory, std::max<size_t>(bytes, 1)), "cuMemAlloc");
    memory_.push_back(memory);
    return memory;
  }

  // Both on the thread of a hardware queue.
  void fill() {
    ::usleep(step_.delay_us);
    if (!input_values_.empty())
      std::memcpy(fake_cuda_bytes(input_), input_values_.data(), input_values_.size());
  }
  void compare() {
    const size_t parts = results_.empty() ? 1 : results_.size();
    const size_t bytes = expected_.size() / parts;
    for (size_t part = 0; part < parts && bytes != 0; ++part) {
      const auto* got =
          static_cast<const uint8_t*>(fake_cuda_bytes(results_.empty() ? result_ : results_[part]));
      const uint8_t* expected = expected_.data() + part * bytes;
      const auto differs = std::mismatch(got, got + bytes, expected).first;
      if (differs == got + bytes) continue;
      fault_ = name_ + ": byte " + std::to_string(differs - got) + " of part " +
               std::to_string(part) + " is wrong";
    }
    is_checked_ = true;
  }

  const Step& step_;
  const std::string name_;
  const std::vector<uint8_t> input_values_;
  const std::vector<uint8_t> expected_;
  std::vector<CUdeviceptr> memory_;  // all of it
  CUdeviceptr input_ = 0;
  CUdeviceptr result_ = 0;
  std::vector<CUdeviceptr> results_;
  braid_job* job_ = nullptr;
  braid_ticket ticket_ = 0;
  std::atomic<bool> is_checked_ = false;
  std::string fault_;
};

// A thread that frees device memory of its own, as a garbage collector does.
class FreeingThread {
 public:
  explicit FreeingThread(CUcontext context) : thread_([this, context] { run(context); }) {}
  ~FreeingThread() {
    is_over_ = true;
    thread_.join();
  }
  void free_some() { ++wanted_; }

 private:
  void run(CUcontext context) {
    (void)cuCtxSetCurrent(context);
    for (int done = 0; !is_over_;) {
      if (done == wanted_) {
        ::usleep(100);
        continue;
      }
      CUdeviceptr memory = 0;
      if (cuMemAlloc(&memory, 4096) == CUDA_SUCCESS) (void)cuMemFree(memory);
      ++done;
    }
  }

  std::atomic<int> wanted_ = 0;
  std::atomic<bool> is_over_ = false;
  std::thread thread_;
};

class Rank {
 public:
  Rank(const Program& program, uint32_t rank, const Place& place) : program_(program), rank_(rank) {
    cuda(cuInit(0), "cuInit");
    CUdevice device = 0;
    const uint32_t own = program.node_ranks == 0 ? 0 : rank % program.node_ranks;
    cuda(cuDeviceGet(&device, static_cast<int>(own)), "cuDeviceGet");
    cuda(cuDevicePrimaryCtxRetain(&context_, device), "cuDevicePrimaryCtxRetain");
    cuda(cuCtxSetCurrent(context_), "cuCtxSetCurrent");
    streams_[0] = nullptr;
    for (uint32_t i = 1; i < kStreams; ++i)
      cuda(cuStreamCreate(&streams_[i], CU_STREAM_NON_BLOCKING), "cuStreamCreate");
    for (uint32_t group = 0; group < program.groups.size(); ++group) open(group, place);
  }
  ~Rank() {
    for (braid_job* job : jobs_)
      if (job != nullptr) (void)braid_close(job);
  }
  Rank(const Rank&) = delete;
  Rank& operator=(const Rank&) = delete;

  void run() {
    FreeingThread freeing(context_);
    for (size_t i = 0; i < program_.steps.size(); ++i) {
      const Step& step = program_.steps[i];
      if (step.frees_beside) freeing.free_some();
      if (const auto own = rank_in(step.group)) begin(i, *own);
      while (!waiting_.empty() && waiting_.front().due <= i) wait_for_first();
      free_checked();
    }
    while (!waiting_.empty()) wait_for_first();
    check_host_waits();
    for (CUstream stream : streams_) cuda(cuStreamSynchronize(stream), "cuStreamSynchronize");
    for (const auto& running : all_) {
      if (running == nullptr) continue;
      running->release();
      note(running->is_checked() ? running->fault() : running->name() + " was not checked");
      running->free();
    }
    check_counts();
  }
  const std::string& faults() const { return faults_; }

 private:
  struct Waiting {
    size_t due = 0;
    Running* running = nullptr;
  };

  std::optional<uint32_t> rank_in(uint32_t group) const {
    const auto& ranks = program_.groups[group];
    const auto found = std::ranges::find(ranks, rank_);
    if (found == ranks.end()) return std::nullopt;
    return static_cast<uint32_t>(found - ranks.begin());
  }

  void open(uint32_t group, const Place& place) {
    jobs_.push_back(nullptr);
    tensors_.push_back(0);
    const auto own = rank_in(group);
    if (!own) return;
    const std::string name = "device" + std::to_string(program_.seed) + "." + std::to_string(group);
    braid_job_options options{};
    options.struct_size = sizeof(options);
    options.socket_path = place.socket.c_str();
    options.name = name.c_str();
    options.rank = *own;
    options.world_size = static_cast<uint32_t>(program_.groups[group].size());
    options.master_address = place.master_address.c_str();
    options.master_node = place.master_node;
    options.token = place.token.c_str();
    options.timeout_ms = kTimeoutMs;
    braid(braid_open(&options, &jobs_.back()), name);
    braid_tensor_options tensor{};
    tensor.struct_size = sizeof(tensor);
    tensor.name = "device";
    tensor.backward_order = BRAID_NO_ORDER;
    tensor.dynamic = 1;
    braid(braid_register(jobs_.back(), &tensor, 1, &tensors_.back()), name);
    if (program_.node_ranks != 0) open_levels(group, name);
  }

  // The first group has all ranks, so it has two, if streams can wait.
  void open_levels(uint32_t group, const std::string& name) {
    uint32_t levels = 0;
    char reason[256] = "";
    braid(braid_open_levels(jobs_[group], nullptr, 0, &levels, reason, sizeof(reason)), name);
    const bool can_wait = std::ranges::none_of(program_.settings, [](const auto& setting) {
      return setting.first == "FAKE_CUDA_WORDS" || setting.first == "BRAID_CUDA_WAIT";
    });
    if (levels == 0 || (group == 0 && levels != (can_wait ? 2 : 1)))
      note(name + " has " + std::to_string(levels) + " levels: " + reason);
  }

  void begin(size_t index, uint32_t own) {
    const Step& step = program_.steps[index];
    CUstream stream = streams_[step.stream];
    all_.push_back(std::make_unique<Running>(program_, index, own));
    Running& running = *all_.back();
    running.compute(stream);
    running.submit(jobs_[step.group], tensors_[step.group], program_, own, stream);
    waiting_.push_back({index + step.wait_after, &running});
  }

  void wait_for_first() {
    Running& running = *waiting_.front().running;
    waiting_.pop_front();
    running.check(streams_[running.step().stream]);
  }

  // In the middle of everything, as torch's allocator may.
  void free_checked() {
    for (auto& running : all_) {
      if (running == nullptr || !running->is_checked()) continue;
      note(running->fault());
      running->release();
      running->free();
      running.reset();
    }
  }

  void note(const std::string& fault) {
    if (!fault.empty()) faults_ += fault + "\n";
  }

  // No function that holds the thread until the GPU is done, where streams write words.
  void check_host_waits() {
    fake_cuda_counts counts{};
    fake_cuda_get_counts(&counts);
    const bool has_words = std::ranges::none_of(
        program_.settings, [](const auto& setting) { return setting.first == "FAKE_CUDA_WORDS"; });
    if (has_words && counts.host_waits != 0)
      note(std::to_string(counts.host_waits) + " calls held a thread until the GPU was done");
  }

  void check_counts() {
    fake_cuda_counts counts{};
    fake_cuda_get_counts(&counts);
    if (counts.unregistered_copies != 0)
      note(std::to_string(counts.unregistered_copies) + " copies of memory that is not registered");
    if (counts.missing_pages != 0)
      note(std::to_string(counts.missing_pages) + " registered pages are missing");
    fake_cuda_thread_calls(
        [](int, const char* thread, const char* function, uint64_t calls, void* self) {
          if (std::strcmp(thread, "braid-device") != 0) return;
          static_cast<Rank*>(self)->note("braid-device called " + std::string(function) + " " +
                                         std::to_string(calls) + " times");
        },
        this);
  }

  const Program& program_;
  const uint32_t rank_;
  CUcontext context_ = nullptr;
  CUstream streams_[kStreams] = {};
  std::vector<braid_job*> jobs_;  // of the groups; null: this rank is in another
  std::vector<uint32_t> tensors_;
  std::vector<std::unique_ptr<Running>> all_;
  std::deque<Waiting> waiting_;
  std::string faults_;
};

}  // namespace

std::string run_rank(const Program& program, uint32_t rank, const Place& place) {
  try {
    Rank running(program, rank, place);
    running.run();
    return running.faults();
  } catch (const Fault& fault) {
    return std::string(fault.what()) + "\n";
  }
}

}  // namespace braid::device_programs
