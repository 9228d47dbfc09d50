// SPDX-License-Identifier: Apache-2.0
// A trainer that never closes its job. Its argument says how it ends: "return" (from main), "exit",
// "_exit", "waiting" (while another thread is inside a call), "fork" (a child exits before it).
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <thread>

#include <braid.h>
#include <sys/wait.h>
#include <unistd.h>

namespace {

// Not the stack's: sanitizers would take the open job for a leak.
braid_job* job = nullptr;
uint32_t tensor = 0;

void check(int error) {
  if (error == BRAID_OK) return;
  std::fprintf(stderr, "%s: %s\n", braid_error_name(error), braid_error_message());
  ::_exit(1);
}

void open_job() {
  braid_job_options options{};
  options.struct_size = sizeof(options);
  options.name = "exits";
  options.world_size = 1;
  options.master_address = "127.0.0.1";
  options.timeout_ms = 60'000;
  options.arena_bytes = 1 << 20;
  check(braid_open(&options, &job));
  braid_tensor_options described{};
  described.struct_size = sizeof(described);
  described.name = "t";
  described.count = 4;
  check(braid_register(job, &described, 1, &tensor));
}

braid_ticket submit() {
  static const float kInput[4] = {};
  braid_operation operation{};
  operation.struct_size = sizeof(operation);
  operation.tensor = tensor;
  operation.input = kInput;
  braid_ticket ticket = 0;
  check(braid_submit(job, &operation, &ticket));
  return ticket;
}

void end_a_child() {
  const pid_t child = ::fork();
  if (child == 0) std::exit(0);
  int status = -1;
  if (child < 0 || ::waitpid(child, &status, 0) != child || status != 0) ::_exit(2);
}

}  // namespace

int main(int, char** arguments) {
  const char* way = arguments[1];
  open_job();
  if (std::strcmp(way, "exit") == 0) std::exit(7);
  if (std::strcmp(way, "_exit") == 0) ::_exit(0);
  if (std::strcmp(way, "waiting") == 0) {
    std::thread([ticket = submit()] { (void)braid_wait(job, ticket, 0); }).detach();
    ::usleep(10'000);  // most probably it waits by now; it is right either way
  }
  if (std::strcmp(way, "fork") == 0) {
    end_a_child();
    check(braid_wait(job, submit(), 0));
    ::_exit(0);
  }
  return 0;
}
