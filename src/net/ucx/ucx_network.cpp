// SPDX-License-Identifier: Apache-2.0
#include "net/ucx/ucx_network.h"

#include <set>
#include <utility>

#include <fmt/ranges.h>

#include "base/socket_address.h"
#include "net/late_rails.h"
#include "net/ucx/ucx_channel.h"
#include "net/ucx/ucx_version.h"
#include "net/ucx/ucx_worker_maker.h"
#include "proto/chunk.h"

namespace braid {
namespace {

// Around a chunk's bytes and header there are UCX's own headers (a few dozen bytes), in the same
// segment.
constexpr size_t kHeadroomBytes = 512;

// Opens a rail into its place in `rails`.
Status open_context(const TransportOptions& options, size_t rail,
                    std::vector<std::shared_ptr<UcxContext>>& rails) {
  const auto node = SocketAddress::parse(options.node_address, 0);
  auto context = UcxContext::create(
      {options.rails[rail], options.transports,
       options.chunk_bytes + sizeof(proto::ChunkHeader) + kHeadroomBytes, node && node->is_v6()});
  if (!context) return context.status();
  rails[rail] = std::move(*context);
  return Status::ok();
}

class UcxChannels final : public FlowChannels {
 public:
  UcxChannels(Loop& loop, PacedTasks& paced, const TransportOptions& options,
              std::vector<std::shared_ptr<UcxContext>> rails, std::atomic<uint64_t>& strangers)
      : loop_(loop),
        rails_(std::move(rails)),
        opened_(rails_.size()),
        maker_(loop, paced, strangers) {
    std::set<size_t> late;
    for (size_t rail = 0; rail < rails_.size(); ++rail) {
      if (rails_[rail] == nullptr) late.insert(rail);
    }
    if (late.empty()) return;
    late_rails_ = std::make_unique<LateRails>(
        loop, options, std::move(late),
        [this, &options](size_t rail) { return open_context(options, rail, opened_); },
        [this](size_t rail) {
          rails_[rail] = std::move(opened_[rail]);
          on_rail_here_(rail);
        });
  }

  bool has_rail(size_t rail) const override { return rails_[rail] != nullptr; }
  void set_on_rail_here(std::function<void(size_t)> on_rail_here) override {
    on_rail_here_ = std::move(on_rail_here);
  }

  void make(const void* owner, ChannelRequest request, std::function<void(Made)> take) override {
    std::optional<std::vector<uint8_t>> remote;
    if (request.role == ChannelRole::TakesChunks) remote = std::move(request.remote_address);
    maker_.make(
        owner, rails_[request.rail], request.proof_key, std::move(remote),
        [this, role = request.role, take = std::move(take)](UcxWorkerMaker::Made made) {
          if (!made) return take(made.status());
          std::unique_ptr<FlowChannel> channel =
              std::make_unique<UcxChannel>(loop_, maker_, role, std::move(*made));
          take(std::move(channel));
        },
        request.segment_bytes);
  }

  void drop(const void* owner) override { maker_.drop(owner); }
  void close(std::function<void()> done) override {
    late_rails_.reset();
    maker_.after_all(done);
  }

 private:
  Loop& loop_;
  std::vector<std::shared_ptr<UcxContext>> rails_;
  std::vector<std::shared_ptr<UcxContext>> opened_;  // by late_rails_, on its thread
  std::function<void(size_t)> on_rail_here_;
  UcxWorkerMaker maker_;
  std::unique_ptr<LateRails> late_rails_;  // none: all are here
};

}  // namespace

UcxNetwork::UcxNetwork(TransportOptions options, std::vector<std::shared_ptr<UcxContext>> rails)
    : options_(std::move(options)), rails_(std::move(rails)) {}

Result<std::shared_ptr<FlowNetwork>> UcxNetwork::open(const TransportOptions& options) {
  std::vector<std::shared_ptr<UcxContext>> rails(options.rails.size());
  const auto late =
      open_rails(options, [&](size_t rail) { return open_context(options, rail, rails); });
  if (!late) return late.status();
  return std::shared_ptr<FlowNetwork>(std::make_shared<UcxNetwork>(options, std::move(rails)));
}

std::unique_ptr<FlowChannels> UcxNetwork::channels(Loop& loop, uint16_t /*io_loop*/,
                                                   PacedTasks& paced,
                                                   std::atomic<uint64_t>& strangers) {
  return std::make_unique<UcxChannels>(loop, paced, options_, rails_, strangers);
}

std::string UcxNetwork::description() const {
  return fmt::format("UCX {}, {}", ucx_version(), fmt::join(options_.transports, ","));
}

}  // namespace braid
