// SPDX-License-Identifier: Apache-2.0
#include "job/test_trainer.h"

#include <algorithm>
#include <cstring>

#include <gtest/gtest.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "base/clock.h"
#include "ipc/frame_writer.h"
#include "proto/version.h"

namespace braid::testing {
namespace {

template <typename Table>
void finish(flatbuffers::FlatBufferBuilder& builder, flatbuffers::Offset<Table> body) {
  builder.Finish(proto::CreateClientMessage(builder, proto::ClientBodyTraits<Table>::enum_value,
                                            body.Union()));
}

SharedMemory make_memory(uint64_t bytes) {
  auto made = SharedMemory::create("test", bytes, SharedMemory::Access::ReadWrite);
  EXPECT_TRUE(made.is_ok()) << made.status().message();
  return std::move(*made);
}

flatbuffers::Offset<proto::RegisterTensors> describe(
    flatbuffers::FlatBufferBuilder& builder, std::span<const TestTrainer::Described> tensors) {
  std::vector<flatbuffers::Offset<proto::TensorDescription>> descriptions;
  for (const TestTrainer::Described& one : tensors) {
    descriptions.push_back(proto::CreateTensorDescriptionDirect(
        builder, one.name.c_str(), one.dtype, one.count, one.backward_order, one.is_dynamic,
        one.is_planned, one.codec, one.state_slots));
  }
  return proto::CreateRegisterTensorsDirect(builder, &descriptions);
}

}  // namespace

TestTrainer::TestTrainer(const std::string& socket_path)
    : socket_(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)),
      rings_(make_memory(proto::rings_bytes(kRingCapacity, kRingCapacity))),
      submit_wake_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  arenas_.push_back(make_memory(kArenaBytes));
  std::fill_n(rings_.data(), rings_.size(),
              uint8_t{0});  // pages of its own, as libbraid makes them
  const RingsView view = create_rings(rings_.data(), kRingCapacity, kRingCapacity);
  submit_ = {&view.header->submit, view.submit, kRingCapacity};
  done_ring_ = {&view.header->done, view.done, kRingCapacity};
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::strncpy(address.sun_path, socket_path.c_str(), sizeof(address.sun_path) - 1);
  EXPECT_EQ(::connect(socket_.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)),
            0);
  flatbuffers::FlatBufferBuilder builder;
  finish(builder, proto::CreateHelloDirect(builder, proto::kClientProtocolVersion, "0", "test"));
  send(builder);
}

void TestTrainer::open(const std::string& job, uint32_t rank, uint32_t world_size,
                       const std::string& master, uint32_t timeout_ms, uint32_t weight,
                       const std::string& token, uint64_t master_node) {
  const std::vector<uint8_t> token_bytes(token.begin(), token.end());
  flatbuffers::FlatBufferBuilder builder;
  finish(builder, proto::CreateOpenJobDirect(builder, job.c_str(), rank, world_size, master.c_str(),
                                             timeout_ms, kArenaBytes, kRingCapacity, kRingCapacity,
                                             weight, &token_bytes, master_node));
  const int fds[] = {arenas_[0].fd(), rings_.fd(), submit_wake_.get()};
  send(builder, fds);
}

void TestTrainer::register_tensors(const std::vector<std::pair<std::string, uint64_t>>& tensors,
                                   DataType dtype, bool planned) {
  std::vector<Described> described;
  for (const auto& [name, count] : tensors)
    described.push_back({name, static_cast<uint8_t>(dtype), count, false, planned});
  register_described(described);
}

void TestTrainer::register_described(std::span<const Described> tensors) {
  flatbuffers::FlatBufferBuilder builder;
  finish(builder, describe(builder, tensors));
  send(builder);
}

Result<RegisteredTensors> read_registration(std::span<const TestTrainer::Described> tensors,
                                            const JobHash& job, const CodecKinds& allowed) {
  flatbuffers::FlatBufferBuilder builder;
  builder.Finish(describe(builder, tensors));
  return RegisteredTensors::read(
      *flatbuffers::GetRoot<proto::RegisterTensors>(builder.GetBufferPointer()), job, allowed);
}

void TestTrainer::unregister_tensors(uint32_t first, uint32_t count) {
  flatbuffers::FlatBufferBuilder builder;
  finish(builder, proto::CreateUnregisterTensors(builder, first, count));
  send(builder);
}

void TestTrainer::register_memory(uint64_t bytes, uint64_t said_bytes) {
  arenas_.push_back(make_memory(bytes));
  flatbuffers::FlatBufferBuilder builder;
  finish(builder, proto::CreateRegisterMemory(builder, said_bytes));
  const int fds[] = {arenas_.back().fd()};
  send(builder, fds);
}

void TestTrainer::tell_work(const std::string& work, const std::string& item, double seconds) {
  flatbuffers::FlatBufferBuilder builder;
  const uint64_t now_ns = SystemClock().now_ns();
  const std::vector<proto::WorkSpan> spans = {{now_ns - 1000, now_ns, 0, false}};
  const std::vector<flatbuffers::Offset<proto::WorkItem>> items = {
      proto::CreateWorkItemDirect(builder, item.c_str(), 0, seconds)};
  const auto load = proto::CreateWorkLoad(builder, 1, 0.1, seconds);
  finish(builder, proto::CreateWorkToldDirect(builder, work.c_str(), now_ns, &items, &spans, load));
  send(builder);
}

void TestTrainer::ask_plans(const std::string& job) {
  flatbuffers::FlatBufferBuilder builder;
  finish(builder, proto::CreatePlanQueryDirect(builder, job.c_str()));
  send(builder);
}

void TestTrainer::ask_facts(const std::string& job) {
  flatbuffers::FlatBufferBuilder builder;
  finish(builder, proto::CreateExplainQueryDirect(builder, job.c_str()));
  send(builder);
}

void TestTrainer::ask_explanation(const std::string& job) {
  flatbuffers::FlatBufferBuilder builder;
  finish(builder, proto::CreateExplanationQueryDirect(builder, job.c_str()));
  send(builder);
}

void TestTrainer::ask_name(const std::string& wanted) {
  given_name.clear();
  flatbuffers::FlatBufferBuilder builder;
  finish(builder, proto::CreateNameQueryDirect(builder, wanted.c_str()));
  send(builder);
}

void TestTrainer::ask_timeline(const std::string& job, uint32_t steps) {
  flatbuffers::FlatBufferBuilder builder;
  finish(builder, proto::CreateTimelineQueryDirect(builder, job.c_str(), steps));
  send(builder);
}

void TestTrainer::ask_status() {
  flatbuffers::FlatBufferBuilder builder;
  finish(builder, proto::CreateStatusQuery(builder));
  send(builder);
}

void TestTrainer::leave(const std::string& reason, bool fails_job) {
  flatbuffers::FlatBufferBuilder builder;
  const char* text = reason.empty() ? nullptr : reason.c_str();
  finish(builder, proto::CreateLeaveJobDirect(builder, text, fails_job));
  send(builder);
}

void TestTrainer::submit(uint64_t ticket, uint32_t tensor, uint64_t step, uint64_t offset,
                         const std::function<void(proto::SubmitEntry&)>& change) {
  proto::SubmitEntry entry{};
  entry.kind = static_cast<uint8_t>(proto::SubmitKind::Operation);
  entry.collective = static_cast<uint8_t>(Collective::AllReduce);
  entry.ticket = ticket;
  entry.tensor = tensor;
  entry.step = step;
  entry.offset = offset;
  if (change) change(entry);
  push(entry);
}

void TestTrainer::release(uint64_t ticket) {
  proto::SubmitEntry entry{};
  entry.kind = static_cast<uint8_t>(proto::SubmitKind::Release);
  entry.ticket = ticket;
  push(entry);
}

void TestTrainer::push(const proto::SubmitEntry& entry) {
  ASSERT_EQ(submit_.state(), RingState::Ready);
  submit_.push(entry);
  if (wakes_daemon && submit_.take_wake_duty()) signal_eventfd(submit_wake_.get());
}

void TestTrainer::poll() {
  while (socket_.is_valid()) {
    const auto outcome = reader_.read(socket_.get(), kFrameBytesMax);
    if (outcome == FrameReader::Outcome::WouldBlock) break;
    if (outcome != FrameReader::Outcome::Frame) {
      was_closed = true;
      socket_.reset();
      break;
    }
    Frame frame = reader_.take();
    flatbuffers::Verifier verifier(frame.bytes.data(), frame.bytes.size());
    ASSERT_TRUE(proto::VerifyClientMessageBuffer(verifier));
    handle(*proto::GetClientMessage(frame.bytes.data()), std::move(frame.fds));
  }
  proto::DoneEntry entry{};
  while (done_ring_.pop(entry) == RingState::Ready) done.push_back(entry);
}

void TestTrainer::handle(const proto::ClientMessage& message, std::vector<Fd> fds) {
  if (const auto* opened = message.body_as_JobOpened()) {
    is_open = true;
    takes_work = opened->takes_work();
    nodes = opened->nodes();
    epoch = opened->epoch();
    block_of_rank.assign(opened->block_of_rank()->begin(), opened->block_of_rank()->end());
    ASSERT_EQ(fds.size(), 2u);
    auto results =
        SharedMemory::adopt(std::move(fds[0]), opened->result_bytes(), opened->result_bytes(),
                            SharedMemory::Access::ReadOnly, "results");
    ASSERT_TRUE(results.is_ok()) << results.status().message();
    results_ = std::move(*results);
  } else if (const auto* tensors = message.body_as_TensorsRegistered()) {
    registered.push_back(tensors->first_handle());
  } else if (message.body_type() == proto::ClientBody::TensorsUnregistered) {
    ++unregistered;
  } else if (const auto* memory = message.body_as_MemoryRegistered()) {
    arenas.push_back(memory->arena());
  } else if (const auto* refused = message.body_as_RegistrationRefused()) {
    refusal = refused->text()->str();
  } else if (const auto* failed = message.body_as_Failure()) {
    failure = Status(static_cast<StatusCode>(failed->code()), failed->text()->str());
  } else if (const auto* explained = message.body_as_ExplanationReply()) {
    explanation = explained->text()->str() + explained->error()->str();
  } else if (const auto* named = message.body_as_NameReply()) {
    given_name = named->job()->str();
  } else if (const auto* reply = message.body_as_StatusReply()) {
    status_reply = (reply_goes_on ? status_reply : std::string()) + reply->json()->str();
    reply_goes_on = reply->more();
    jobs_hidden = reply->jobs_hidden();
  } else if (message.body_type() == proto::ClientBody::JobLeft) {
    has_left = true;
  }
}

void TestTrainer::send(flatbuffers::FlatBufferBuilder& builder, std::span<const int> fds) {
  FrameWriter writer(1 << 20);
  ASSERT_TRUE(writer.push({builder.GetBufferPointer(), builder.GetSize()}, fds).is_ok());
  ASSERT_TRUE(writer.flush(socket_.get()).is_ok());
  ASSERT_TRUE(writer.is_empty());
}

}  // namespace braid::testing
