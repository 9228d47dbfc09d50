// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include <braid.h>
#include <gtest/gtest.h>

#include "ipc/temporary_directory.h"
#include "test_daemon.h"

namespace braid {

// A TestDaemon on a socket of its own, and short ways to call libbraid.
class ClientTest : public ::testing::Test {
 protected:
  void start_daemon(TestDaemon::Options options = {}) {
    options.path = path_;
    daemon_ = std::make_unique<TestDaemon>(std::move(options));
  }

  braid_job_options job_options() const {
    braid_job_options options{};
    options.struct_size = sizeof(options);
    options.socket_path = path_.c_str();
    options.name = "job";
    options.rank = 0;
    options.world_size = 1;
    options.master_address = "127.0.0.1";
    options.timeout_ms = 20'000;
    options.arena_bytes = 64 << 20;
    return options;
  }

  braid_job* open_job(const braid_job_options& options) {
    braid_job* job = nullptr;
    EXPECT_EQ(braid_open(&options, &job), BRAID_OK) << braid_error_message();
    return job;
  }
  braid_job* open_job() { return open_job(job_options()); }

  static braid_tensor_options tensor_options(const char* name, uint64_t count) {
    braid_tensor_options options{};
    options.struct_size = sizeof(options);
    options.name = name;
    options.dtype = BRAID_FLOAT32;
    options.count = count;
    options.backward_order = BRAID_NO_ORDER;
    return options;
  }

  static uint32_t register_tensor(braid_job* job, const char* name, uint64_t count) {
    return register_one(job, tensor_options(name, count));
  }

  static uint32_t register_dynamic(braid_job* job, const char* name) {
    braid_tensor_options options = tensor_options(name, 0);
    options.dynamic = 1;
    return register_one(job, options);
  }

  static uint32_t register_one(braid_job* job, const braid_tensor_options& options) {
    uint32_t tensor = UINT32_MAX;
    EXPECT_EQ(braid_register(job, &options, 1, &tensor), BRAID_OK) << braid_error_message();
    return tensor;
  }

  static braid_operation all_reduce(uint32_t tensor, uint64_t step, const void* input) {
    braid_operation operation{};
    operation.struct_size = sizeof(operation);
    operation.collective = BRAID_ALL_REDUCE;
    operation.tensor = tensor;
    operation.step = step;
    operation.reduction = BRAID_SUM;
    operation.input = input;
    return operation;
  }

  static braid_ticket submit(braid_job* job, const braid_operation& operation) {
    braid_ticket ticket = 0;
    EXPECT_EQ(braid_submit(job, &operation, &ticket), BRAID_OK) << braid_error_message();
    return ticket;
  }

  static bool message_has(const std::string& part) {
    return std::string(braid_error_message()).find(part) != std::string::npos;
  }

  TemporaryDirectory directory_;
  std::string path_ = directory_.file("braidd.sock");
  std::unique_ptr<TestDaemon> daemon_;
};

// EXPECT that a call fails so, with a message that contains `part`.
#define EXPECT_BRAID_ERROR(call, code, part)                 \
  do {                                                       \
    EXPECT_EQ((call), (code)) << braid_error_message();      \
    EXPECT_TRUE(message_has(part)) << braid_error_message(); \
  } while (false)

#define EXPECT_INVALID(call, part) EXPECT_BRAID_ERROR(call, BRAID_ERROR_INVALID_ARGUMENT, part)

}  // namespace braid
