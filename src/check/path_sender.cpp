// SPDX-License-Identifier: Apache-2.0
#include "check/path_sender.h"

#include <span>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/random.h"

namespace braid {
namespace {

constexpr size_t kOrdersMax = 16;
// In the first quarter of the time TCP feels its way forward, so nothing counts.
constexpr uint32_t kWarmUpPart = 4;

}  // namespace

// What sends the chunks of one order. The chunks keep it alive until they are settled or dropped.
class PathSender::Stream final : public ChunkSource,
                                 public std::enable_shared_from_this<PathSender::Stream> {
 public:
  Stream(Links& links, const Order& order)
      : links_(links), order_(order), job_key_(random_u64()), bytes_(order.chunk_bytes) {
    fill_random(bytes_);  // nothing on the way makes them fewer
  }

  // False: there is no link.
  bool begin() {
    if (links_.find(order_.peer) == nullptr) return false;
    if (order_.flows != 0) links_.limit(job_key_, {.flows = order_.flows});
    for (uint32_t i = 0; i < order_.chunks_max; ++i) submit();
    return true;
  }
  void begin_to_count() {
    counts_from_ns_ = clock_.now_ns();
    acknowledged_bytes_ = 0;
  }
  Report end() {
    is_over_ = true;
    links_.limit(job_key_, {});
    return {order_.number, true, acknowledged_bytes_, clock_.now_ns() - counts_from_ns_};
  }
  const Order& order() const { return order_; }

  std::span<const uint8_t> payload_of(const OutgoingChunk&) override {
    return is_over_ ? std::span<const uint8_t>() : std::span<const uint8_t>(bytes_);
  }
  void on_chunk_settled(const OutgoingChunk& chunk, bool acknowledged) override {
    if (is_over_ || !acknowledged) return;  // without a link there is nowhere to send more
    acknowledged_bytes_ += chunk.header.bytes;
    submit();
  }

 private:
  void submit() {
    Link* const link = links_.find(order_.peer);
    if (link == nullptr) return;
    OutgoingChunk chunk;
    chunk.header.magic = proto::kChunkMagic;
    chunk.header.version = proto::kChunkVersion;
    chunk.header.phase = static_cast<uint8_t>(proto::Phase::ReduceScatter);
    chunk.header.job_key = job_key_;
    chunk.header.ack_time = static_cast<uint8_t>(proto::AckTime::AtOnce);
    chunk.header.chunk = chunks_++;
    chunk.header.bytes = order_.chunk_bytes;
    chunk.source = shared_from_this();
    link->submit(std::move(chunk));
  }

  Links& links_;
  const Order order_;
  const uint64_t job_key_;
  const SystemClock clock_;
  std::vector<uint8_t> bytes_;  // of each chunk
  uint32_t chunks_ = 0;
  uint64_t acknowledged_bytes_ = 0;
  uint64_t counts_from_ns_ = 0;
  bool is_over_ = false;
};

PathSender::PathSender(Loop& loop, Links& links, Door<Report>& reports)
    : loop_(loop),
      links_(links),
      reports_(reports),
      orders_(loop, kOrdersMax, [this](Order& order) { handle(order); }),
      timer_(loop) {}

PathSender::~PathSender() = default;

void PathSender::handle(const Order& order) {
  BRAID_ASSERT_IN_LOOP(loop_);
  if (stream_ != nullptr) end();
  auto stream = std::make_shared<Stream>(links_, order);
  if (!stream->begin()) return reports_.send_unbounded({.number = order.number});
  stream_ = std::move(stream);
  const uint32_t warm_up_ms = order.milliseconds / kWarmUpPart;
  timer_.start_once(warm_up_ms, [this, rest_ms = order.milliseconds - warm_up_ms] {
    stream_->begin_to_count();
    timer_.start_once(rest_ms, [this] { end(); });
  });
}

void PathSender::end() {
  timer_.stop();
  reports_.send_unbounded(std::exchange(stream_, nullptr)->end());
}

}  // namespace braid
