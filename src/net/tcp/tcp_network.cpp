// SPDX-License-Identifier: Apache-2.0
#include "net/tcp/tcp_network.h"

#include <set>
#include <unordered_map>
#include <utility>

#include "base/lifetime.h"
#include "base/log.h"
#include "net/late_rails.h"
#include "net/tcp/flow_listener.h"
#include "net/tcp/tcp_channel.h"

namespace braid {
namespace {

Result<TcpRail> find_rail(const TransportOptions& options, size_t rail) {
  if (!has_link(options.rails[rail]))
    return make_status(StatusCode::Unavailable, "rail {} has no carrier", options.rails[rail]);
  auto found = find_tcp_rail(options.rails[rail], options.node_address);
  if (found) found->is_one_of_several = options.rails.size() > 1;
  return found;
}

// Each I/O loop has a port of its own.
Result<std::unique_ptr<ListeningRail>> listen_on(const TransportOptions& options, size_t rail,
                                                 size_t io_loop) {
  auto found = find_rail(options, rail);
  if (!found) return found.status();
  if (options.is_alone)
    return std::make_unique<ListeningRail>(ListeningRail{std::move(*found), Fd()});
  const auto port = static_cast<uint16_t>(options.tcp_port == 0 ? 0 : options.tcp_port + io_loop);
  auto socket = FlowListener::listen(found->addresses.front().with_port(port));
  if (!socket) return socket.status();
  return std::make_unique<ListeningRail>(ListeningRail{std::move(*found), std::move(*socket)});
}

class TcpChannels final : public FlowChannels {
 public:
  TcpChannels(Loop& loop, uint16_t io_loop, const TransportOptions& options,
              std::vector<std::unique_ptr<ListeningRail>> rails, std::atomic<uint64_t>& strangers)
      : loop_(loop), strangers_(strangers), opened_(std::move(rails)), rails_(opened_.size()) {
    std::set<size_t> late;
    for (size_t rail = 0; rail < opened_.size(); ++rail) {
      if (opened_[rail] == nullptr || !take(rail)) late.insert(rail);
    }
    if (late.empty()) return;
    late_rails_ = std::make_unique<LateRails>(
        loop, options, std::move(late),
        [this, &options, io_loop](size_t rail) -> Status {
          auto opened = listen_on(options, rail, io_loop);
          if (opened) opened_[rail] = std::move(*opened);
          return opened.status();
        },
        [this](size_t rail) {
          if (take(rail)) on_rail_here_(rail);
        });
  }

  bool has_rail(size_t rail) const override { return rails_[rail].is_here; }
  void set_on_rail_here(std::function<void(size_t)> on_rail_here) override {
    on_rail_here_ = std::move(on_rail_here);
  }

  void make(const void* owner, ChannelRequest request, std::function<void(Made)> take) override {
    const uint64_t number = ++last_request_;
    requests_.emplace(number, Waiting{owner, std::move(request), std::move(take)});
    loop_.defer(lifetime_.guard([this, number] { make_now(number); }));
  }

  void drop(const void* owner) override {
    std::erase_if(requests_, [owner](const auto& entry) { return entry.second.owner == owner; });
  }

  void close(std::function<void()> done) override {
    late_rails_.reset();
    loop_.defer(std::move(done));
  }

 private:
  struct Rail {
    TcpRail rail;
    std::unique_ptr<FlowListener> listener;  // nullptr: no flows come, or it is not here
    bool is_here = false;                    // it has had a carrier
  };
  struct Waiting {
    const void* owner;
    ChannelRequest request;
    std::function<void(Made)> take;
  };

  bool take(size_t rail) {
    const auto opened = std::move(opened_[rail]);
    if (!opened->socket.is_valid()) {
      rails_[rail] = {std::move(opened->rail), nullptr, true};
      return true;
    }
    auto listener =
        FlowListener::create(loop_, std::move(opened->socket), opened->rail.name, strangers_);
    if (!listener) {
      BRAID_LOG_WARN(LogFields{.rail = opened->rail.name}, "rail {}: {}", opened->rail.name,
                     listener.status().message());
      return false;
    }
    rails_[rail] = {std::move(opened->rail), std::move(*listener), true};
    return true;
  }

  void make_now(uint64_t number) {
    const auto found = requests_.find(number);
    if (found == requests_.end()) return;
    const Waiting waiting = std::move(found->second);
    requests_.erase(found);
    const Rail& rail = rails_[waiting.request.rail];
    if (rail.listener == nullptr)
      return waiting.take(Status(StatusCode::Unavailable, "no flow can be opened on the rail yet"));
    std::unique_ptr<FlowChannel> made =
        std::make_unique<TcpChannel>(loop_, rail.rail, *rail.listener, *buffer_, waiting.request);
    waiting.take(std::move(made));
  }

  Loop& loop_;
  std::atomic<uint64_t>& strangers_;
  std::vector<std::unique_ptr<ListeningRail>> opened_;  // late ones by late_rails_, on its thread
  std::vector<Rail> rails_;
  std::function<void(size_t)> on_rail_here_;
  const std::unique_ptr<ReadBuffer> buffer_ = std::make_unique_for_overwrite<ReadBuffer>();
  uint64_t last_request_ = 0;
  std::unordered_map<uint64_t, Waiting> requests_;
  std::unique_ptr<LateRails> late_rails_;  // none: all are here
  Lifetime lifetime_;
};

}  // namespace

TcpNetwork::TcpNetwork(const TransportOptions& options, size_t io_loops) : options_(options) {
  for (size_t loop = 0; loop < io_loops; ++loop) rails_.emplace_back(options.rails.size());
}

Result<std::shared_ptr<FlowNetwork>> TcpNetwork::open(const TransportOptions& options,
                                                      size_t io_loops) {
  const std::shared_ptr<TcpNetwork> network(new TcpNetwork(options, io_loops));
  const auto late = open_rails(options, [&](size_t rail) -> Status {
    for (size_t loop = 0; loop < io_loops; ++loop) {
      auto opened = listen_on(options, rail, loop);
      if (!opened) return opened.status();
      network->rails_[loop][rail] = std::move(*opened);
    }
    return Status::ok();
  });
  if (!late) return late.status();
  return std::shared_ptr<FlowNetwork>(network);
}

Status TcpNetwork::check(const TransportOptions& options) {
  return open_rails(options, [&](size_t rail) { return find_rail(options, rail).status(); })
      .status();
}

std::vector<Status> TcpNetwork::find_port_faults(const TransportOptions& options, size_t io_loops) {
  if (options.tcp_port == 0) return {};
  std::vector<Status> faults;
  std::vector<std::unique_ptr<ListeningRail>> held;  // two rails may have one address
  for (size_t rail = 0; rail < options.rails.size(); ++rail) {
    if (!find_rail(options, rail)) continue;
    for (size_t loop = 0; loop < io_loops; ++loop) {
      auto opened = listen_on(options, rail, loop);
      if (opened) {
        held.push_back(std::move(*opened));
      } else {
        faults.push_back(opened.status());
      }
    }
  }
  return faults;
}

std::unique_ptr<FlowChannels> TcpNetwork::channels(Loop& loop, uint16_t io_loop,
                                                   PacedTasks& /*paced*/,
                                                   std::atomic<uint64_t>& strangers) {
  return std::make_unique<TcpChannels>(loop, io_loop, options_, std::move(rails_[io_loop]),
                                       strangers);
}

}  // namespace braid
