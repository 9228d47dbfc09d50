// SPDX-License-Identifier: Apache-2.0
// Programs that were compiled against an older or a newer braid.h than libbraid.
#include <cstddef>

#include "open_job_fixture.h"

namespace braid {
namespace {

// A field that is added begins behind the struct as it was, its padding included: what an older
// program leaves there is no field. For a new field add the sizes here, and keep these.
static_assert(offsetof(braid_job_options, token) == 56);
static_assert(offsetof(braid_job_options, master_node) == 64 && sizeof(braid_job_options) == 72);
static_assert(offsetof(braid_tensor_options, planned) == 40);
static_assert(offsetof(braid_tensor_options, codec) == 48);
static_assert(offsetof(braid_tensor_options, state_slots) == 56 &&
              sizeof(braid_tensor_options) == 64);
static_assert(offsetof(braid_operation, input_splits) == 56);
static_assert(offsetof(braid_operation, update) == 72 && sizeof(braid_operation) == 80);
static_assert(sizeof(braid_update) == 88);

class JobOptionsAgeTest : public ClientTest {};
class StructAgesTest : public OpenJobTest {};

// As a later braid.h would have it.
template <typename Struct>
struct Longer {
  Struct known;
  uint64_t from_the_future = 0;
};

template <typename Struct>
Longer<Struct> longer(Struct known) {
  known.struct_size = sizeof(Longer<Struct>);
  return {known};
}

// Compiled against a braid.h that had no token yet.
TEST_F(JobOptionsAgeTest, AnOlderCallersOptionsAreShorter) {
  start_daemon();
  auto options = job_options();
  options.token = "what lies behind the struct";
  options.struct_size = offsetof(braid_job_options, token);
  EXPECT_EQ(braid_close(open_job(options)), BRAID_OK);
  EXPECT_EQ(daemon_->seen().token, "");
  options.struct_size -= 1;
  braid_job* job = nullptr;
  EXPECT_INVALID(braid_open(&options, &job), "struct_size");
}

TEST_F(JobOptionsAgeTest, ANewerCallersUnknownFieldsMustBeZero) {
  start_daemon();
  auto newer = longer(job_options());
  braid_job* job = open_job(newer.known);
  ASSERT_NE(job, nullptr);
  EXPECT_EQ(braid_close(job), BRAID_OK);
  newer.from_the_future = 1;
  EXPECT_INVALID(braid_open(&newer.known, &job), "upgrade libbraid");
}

TEST_F(StructAgesTest, AnOlderCallersTensorsAreShorter) {
  // As braid.h was before it said which tensors are planned: two of them side by side.
  struct Older {
    size_t struct_size;
    const char* name;
    uint32_t dtype;
    uint64_t count;
    uint32_t backward_order;
    uint32_t dynamic;
  };
  static_assert(sizeof(Older) == offsetof(braid_tensor_options, planned));
  const Older older[] = {{sizeof(Older), "a", BRAID_FLOAT32, 4, BRAID_NO_ORDER, 0},
                         {sizeof(Older), "b", BRAID_FLOAT32, 4, BRAID_NO_ORDER, 0}};
  uint32_t handles[2] = {};
  ASSERT_EQ(braid_register(job_, reinterpret_cast<const braid_tensor_options*>(older), 2, handles),
            BRAID_OK)
      << braid_error_message();
  EXPECT_EQ(handles[1], 1u);
  auto shorter = tensor_options("c", 4);
  shorter.struct_size = sizeof(Older) - 1;
  EXPECT_INVALID(braid_register(job_, &shorter, 1, handles),
                 "struct_size of braid_tensor_options is 39");
}

TEST_F(StructAgesTest, ANewerCallersTensorsAreLonger) {
  Longer<braid_tensor_options> tensors[] = {longer(tensor_options("a", 4)),
                                            longer(tensor_options("b", 4))};
  uint32_t handles[2] = {};
  tensors[1].from_the_future = 1;
  EXPECT_INVALID(braid_register(job_, &tensors[0].known, 2, handles), "upgrade libbraid");
  tensors[1].from_the_future = 0;
  ASSERT_EQ(braid_register(job_, &tensors[0].known, 2, handles), BRAID_OK) << braid_error_message();
  EXPECT_EQ(handles[1], 1u);
}

// Compiled against a braid.h that had no splits yet: what lies behind the struct is not read.
TEST_F(StructAgesTest, AnOlderCallersOperationIsShorter) {
  const uint32_t tensor = register_tensor(job_, "a", 4);
  auto operation = all_reduce(tensor, 1, values_.data());
  operation.collective = BRAID_ALL_TO_ALL;
  operation.input_splits = reinterpret_cast<const uint64_t*>(1);
  operation.struct_size = offsetof(braid_operation, input_splits);
  const braid_ticket ticket = done(operation);
  EXPECT_EQ(daemon_->seen().splits, (std::vector<uint64_t>{4, 4}));
  EXPECT_EQ(copied(ticket, 4), values_);
}

TEST_F(StructAgesTest, ANewerCallersOperationIsLonger) {
  const uint32_t tensor = register_tensor(job_, "a", 4);
  auto operation = longer(all_reduce(tensor, 1, values_.data()));
  operation.from_the_future = uint64_t{1} << 63;
  braid_ticket ticket = 0;
  EXPECT_INVALID(braid_submit(job_, &operation.known, &ticket), "upgrade libbraid");
  operation.from_the_future = 0;
  ticket = done(operation.known);
  EXPECT_EQ(copied(ticket, 4), values_);
  operation.known.struct_size = offsetof(braid_operation, input_splits) - 1;
  EXPECT_INVALID(braid_submit(job_, &operation.known, &ticket), "struct_size of braid_operation");
}

}  // namespace
}  // namespace braid
