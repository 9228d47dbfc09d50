// SPDX-License-Identifier: Apache-2.0
#include "test_daemon.h"

#include <cstring>
#include <numeric>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "proto/types.h"

namespace braid {
namespace {

template <typename Body>
void send(ClientConnection& connection, flatbuffers::FlatBufferBuilder& builder,
          flatbuffers::Offset<Body> body, std::span<const int> fds = {}) {
  builder.Finish(
      proto::CreateClientMessage(builder, proto::ClientBodyTraits<Body>::enum_value, body.Union()));
  connection.send(builder, fds);
}

void refuse_registration(ClientConnection& connection, StatusCode code, const std::string& text) {
  flatbuffers::FlatBufferBuilder builder;
  send(connection, builder,
       proto::CreateRegistrationRefusedDirect(builder, static_cast<uint8_t>(code), text.c_str()));
}

void send_failure(ClientConnection& connection, StatusCode code, const std::string& text) {
  flatbuffers::FlatBufferBuilder builder;
  send(connection, builder,
       proto::CreateFailureDirect(builder, static_cast<uint8_t>(code), text.c_str()));
}

void add_arena(std::vector<SharedMemory>& arenas, uint64_t bytes, Fd memory) {
  auto arena = SharedMemory::adopt(std::move(memory), bytes, 1ull << 46,
                                   SharedMemory::Access::ReadOnly, "arena");
  ASSERT_TRUE(arena) << arena.status().message();
  arenas.push_back(std::move(*arena));
}

}  // namespace

TestDaemon::TestDaemon(Options options) : options_(std::move(options)) {
  auto loop = Loop::create("test daemon");
  EXPECT_TRUE(loop.is_ok());
  loop_ = std::move(*loop);
  door_ = std::make_unique<Door<std::function<void()>>>(
      *loop_, 64, [](std::function<void()>& task) { task(); });
  ClientServerOptions server_options;
  server_options.path = options_.path;
  server_options.node_name = "test-node";
  server_options.daemon_version = "0.0.1";
  server_options.address = options_.address;
  server_options.node = kNode;
  auto server = ClientServer::create(*loop_, server_options, *this);
  EXPECT_TRUE(server.is_ok()) << server.status().message();
  if (server) server_ = std::move(*server);
  thread_ = std::thread([this] { loop_->run(); });
}

TestDaemon::~TestDaemon() {
  go_on();
  loop_->stop();
  thread_.join();
  sessions_.clear();
  server_.reset();
  door_.reset();
}

void TestDaemon::call(std::function<void()> task) {
  std::promise<void> done;
  door_->send_unbounded([&] {
    task();
    done.set_value();
  });
  done.get_future().wait();
}

void TestDaemon::stop() {
  std::promise<void> stopped;
  going_on_ = {};
  is_stopped_ = true;
  door_->send_unbounded([&stopped, going_on = going_on_.get_future().share()] {
    stopped.set_value();
    going_on.wait();
  });
  stopped.get_future().wait();
}

void TestDaemon::go_on() {
  if (std::exchange(is_stopped_, false)) going_on_.set_value();
}

void TestDaemon::complete_held() {
  call([this] {
    holds_ = false;
    for (auto& [id, session] : sessions_) {
      for (const auto& entry : std::exchange(session->held, {})) complete(*session, entry);
      session->rings->wake_client();
    }
  });
}

void TestDaemon::fail_jobs(const std::string& text) {
  call([&] {
    for (auto& [id, session] : sessions_)
      send_failure(*session->connection, StatusCode::JobFailed, text);
  });
}

void TestDaemon::die() {
  call([this] {
    sessions_.clear();
    server_.reset();
  });
}

void TestDaemon::complete(const proto::DoneEntry& entry) {
  call([&] {
    for (auto& [id, session] : sessions_) {
      EXPECT_TRUE(session->rings->push_done(entry).is_ok());
      session->rings->wake_client();
    }
  });
}

void TestDaemon::send_to_all(const std::function<void(flatbuffers::FlatBufferBuilder&)>& finish,
                             std::span<const int> fds) {
  call([&] {
    flatbuffers::FlatBufferBuilder builder;
    finish(builder);
    for (auto& [id, session] : sessions_) session->connection->send(builder, fds);
  });
}

size_t TestDaemon::live_results() {
  size_t count = 0;
  call([&] {
    for (auto& [id, session] : sessions_) {
      on_submit(*session);  // releases do not wake the daemon
      count += session->offset_of_ticket.size();
    }
  });
  return count;
}

std::vector<uint64_t> TestDaemon::arenas() {
  std::vector<uint64_t> bytes;
  call([&] {
    for (const SharedMemory& arena : sessions_.rbegin()->second->arenas)
      bytes.push_back(arena.size());
  });
  return bytes;
}

void TestDaemon::on_client_closed(ClientConnection& connection, const Status&) {
  sessions_.erase(connection.id());
}

void TestDaemon::on_client_message(ClientConnection& connection,
                                   const proto::ClientMessage& message, std::vector<Fd> fds) {
  flatbuffers::FlatBufferBuilder builder;
  if (const auto* open = message.body_as_OpenJob()) {
    auto& session = sessions_[connection.id()];
    session = std::make_unique<Session>();
    session->connection = &connection;
    open_job(*session, *open, std::move(fds));
  } else if (const auto* registration = message.body_as_RegisterTensors()) {
    Session& session = *sessions_.at(connection.id());
    if (registration->tensors()->Get(0)->name()->str() == options_.refused_tensor) {
      return refuse_registration(connection, StatusCode::Mismatch,
                                 "tensor '" + options_.refused_tensor + "' differs");
    }
    const uint32_t first = session.tensors;
    session.tensors += registration->tensors()->size();
    send(connection, builder, proto::CreateTensorsRegistered(builder, first));
  } else if (const auto* leaving = message.body_as_UnregisterTensors()) {
    Session& session = *sessions_.at(connection.id());
    on_submit(session);
    seen_.unregistered = {leaving->first_handle(), leaving->count()};
    if (!session.offset_of_ticket.empty()) {
      return refuse_registration(connection, StatusCode::InvalidArgument, "a ticket is held");
    }
    send(connection, builder, proto::CreateTensorsUnregistered(builder));
  } else if (const auto* registered = message.body_as_RegisterMemory()) {
    ASSERT_EQ(fds.size(), 1u);
    register_memory(*sessions_.at(connection.id()), registered->bytes(), std::move(fds[0]));
  } else if (const auto* told = message.body_as_WorkTold()) {
    const std::string load = told->load() == nullptr
                                 ? "no load"
                                 : fmt::format("load of {} updates", told->load()->updates());
    seen_.told.push_back(fmt::format("{}: {} items, {} spans, {}", told->work()->str(),
                                     told->items()->size(), told->spans()->size(), load));
  } else if (const auto* leave = message.body_as_LeaveJob()) {
    seen_.reason = leave->reason() == nullptr ? std::string() : leave->reason()->str();
    if (!options_.answers_leave) return;
    send(connection, builder, proto::CreateJobLeft(builder));
    connection.close_after_send();
  }
}

void TestDaemon::open_job(Session& session, const proto::OpenJob& open, std::vector<Fd> fds) {
  seen_.weight = open.weight();
  seen_.master_node = open.master_node();
  seen_.token.assign(open.token()->begin(), open.token()->end());
  if (!options_.answers_open) return;
  if (!options_.open_failure.empty()) {
    send_failure(*session.connection, StatusCode::Mismatch, options_.open_failure);
    session.connection->close_after_send();
    return;
  }
  ASSERT_EQ(fds.size(), 3u);
  add_arena(session.arenas, open.arena_bytes(), std::move(fds[0]));
  auto rings = DaemonRings::adopt(std::move(fds[1]), std::move(fds[2]), open.submit_capacity(),
                                  open.done_capacity());
  ASSERT_TRUE(rings.is_ok()) << rings.status().message();
  auto results =
      SharedMemory::create("test-result", options_.result_bytes, SharedMemory::Access::ReadOnly);
  ASSERT_TRUE(results) << results.status().message();
  session.rings = std::move(*rings);
  session.results = std::move(*results);
  session.extents = ExtentAllocator(options_.result_bytes);
  session.rank = open.rank();
  session.world_size = open.world_size();
  ASSERT_TRUE(session.rings->start(*loop_, [this, &session] { on_submit(session); }).is_ok());

  session.rings->let_client_poll(options_.lets_poll);
  flatbuffers::FlatBufferBuilder builder;
  const Fd done_wake = session.rings->take_done_wake();
  const int sent[] = {session.results.fd(), done_wake.get()};
  send(*session.connection, builder,
       proto::CreateJobOpenedDirect(builder, 1, options_.result_bytes, &options_.block_of_rank,
                                    options_.polling, options_.takes_work, options_.nodes),
       sent);
}

void TestDaemon::register_memory(Session& session, uint64_t bytes, Fd memory) {
  if (!options_.refused_memory.empty())
    return refuse_registration(*session.connection, StatusCode::Mismatch, options_.refused_memory);
  flatbuffers::FlatBufferBuilder builder;
  add_arena(session.arenas, bytes, std::move(memory));
  const auto number = static_cast<uint32_t>(options_.arenas_skipped + session.arenas.size() - 1);
  send(*session.connection, builder, proto::CreateMemoryRegistered(builder, number));
}

void TestDaemon::on_submit(Session& session) {
  proto::SubmitEntry entry{};
  while (true) {
    const auto popped = session.rings->pop(entry);
    ASSERT_TRUE(popped.is_ok()) << popped.status().message();
    if (!*popped) break;
    if (entry.kind == static_cast<uint8_t>(proto::SubmitKind::Release)) {
      const auto found = session.offset_of_ticket.find(entry.ticket);
      ASSERT_NE(found, session.offset_of_ticket.end())
          << "ticket " << entry.ticket << " was not done";
      session.extents.release(found->second);
      session.offset_of_ticket.erase(found);
      continue;
    }
    if (holds_) {
      session.held.push_back(entry);
    } else {
      complete(session, entry);
    }
  }
  session.rings->wake_client();
}

void TestDaemon::complete(Session& session, const proto::SubmitEntry& entry) {
  const auto collective = static_cast<Collective>(entry.collective);
  ASSERT_LT(entry.arena, session.arenas.size());
  seen_.arena = entry.arena;
  seen_.timeouts_ms.push_back(entry.timeout_ms);
  const uint64_t bytes = collective == Collective::Barrier
                             ? 0
                             : entry.count * element_bytes(static_cast<DataType>(entry.dtype));
  const uint64_t block = options_.block_of_rank[session.rank];
  const uint64_t result_bytes =
      collective == Collective::AllGather ? bytes * session.world_size : bytes;
  if (is_exchange(collective)) return complete_exchange(session, entry);
  const auto offset = session.extents.allocate(result_bytes);
  ASSERT_TRUE(offset.has_value());
  uint8_t* to =
      session.results.data() + *offset + (collective == Collective::AllGather ? block * bytes : 0);
  const uint8_t* from = session.arenas[entry.arena].data() + entry.offset +
                        (collective == Collective::ReduceScatter ? block * bytes : 0);
  if (bytes > 0) std::memcpy(to, from, bytes);
  session.offset_of_ticket[entry.ticket] = *offset;
  ASSERT_TRUE(session.rings->push_done({entry.ticket, *offset, result_bytes, 0, 0}).is_ok());
}

// Every other rank gives zeros; what a rank gives itself comes back.
void TestDaemon::complete_exchange(Session& session, const proto::SubmitEntry& entry) {
  const auto collective = static_cast<Collective>(entry.collective);
  const SharedMemory& arena = session.arenas[entry.arena];
  const uint32_t world = session.world_size;
  const bool is_root = entry.root == session.rank;
  seen_.splits.assign(2 * size_t{world}, 0);
  if (collective == Collective::AllToAll) {
    std::memcpy(seen_.splits.data(), arena.data() + entry.table,
                seen_.splits.size() * sizeof(uint64_t));
  } else {
    const bool is_gather = collective == Collective::Gather;
    for (uint32_t rank = 0; rank < world; ++rank) {
      seen_.splits[rank] = (is_gather ? rank == entry.root : is_root) ? entry.count : 0;
      seen_.splits[world + rank] = (is_gather ? is_root : rank == entry.root) ? entry.count : 0;
    }
  }
  const uint64_t element = element_bytes(static_cast<DataType>(entry.dtype));
  const auto before = [&](uint32_t first, uint32_t count) {
    const auto begin = seen_.splits.begin() + first;
    return std::accumulate(begin, begin + count, uint64_t{0}) * element;
  };
  const uint64_t result_bytes = before(world, world);
  const auto offset = session.extents.allocate(result_bytes);
  ASSERT_TRUE(offset.has_value());
  std::memcpy(session.results.data() + *offset + before(world, session.rank),
              arena.data() + entry.offset + before(0, session.rank),
              seen_.splits[session.rank] * element);
  session.offset_of_ticket[entry.ticket] = *offset;
  ASSERT_TRUE(session.rings->push_done({entry.ticket, *offset, result_bytes, 0, 0}).is_ok());
}

}  // namespace braid
