// SPDX-License-Identifier: Apache-2.0
#include "levels/levels_opening.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <string_view>
#include <type_traits>
#include <utility>

#include "connection.h"
#include "gpu/nccl.h"
#include "job.h"

namespace braid::client {
namespace {

constexpr size_t kJobNameBytesMax = 255;
// How long the ranks of a node wait for each other in NCCL, where one of them may have failed.
constexpr uint32_t kJoinMsMax = 60'000;

// What local rank 0 of each node has made for it.
struct SaidIds {
  LocalIds ids = {};
  SaidText failure;
};

struct SaidOutcome {
  SaidText failure;
};

Status register_dynamic(Registry& registry, const char* name, uint32_t& tensor) {
  braid_tensor_options options{};
  options.struct_size = sizeof(options);
  options.name = name;
  options.backward_order = BRAID_NO_ORDER;
  options.dynamic = 1;
  return registry.register_tensors(&options, 1, &tensor);
}

// $BRAID_LEVELS.
Status read_levels_setting() {
  const char* given = std::getenv("BRAID_LEVELS");
  const std::string_view setting = given == nullptr ? "" : given;
  if (setting.empty() || setting == "2") return {};
  if (setting == "1") return Status(StatusCode::Cancelled, "BRAID_LEVELS is 1");
  return make_status(StatusCode::InvalidArgument,
                     "BRAID_LEVELS is '{}'; right are '2' (the default) and '1'", setting);
}

Status find_gpu(const DeviceContext& device, std::array<uint8_t, 16>& gpu) {
  const CudaDriver& driver = device.driver();
  const DeviceContext::Scope scope(device);
  BRAID_RETURN_IF_ERROR(scope.status());
  CUdevice number = 0;
  CUuuid uuid{};
  BRAID_RETURN_IF_ERROR(driver.check(driver.CtxGetDevice(&number), "cuCtxGetDevice"));
  BRAID_RETURN_IF_ERROR(driver.check(driver.DeviceGetUuid(&uuid, number), "cuDeviceGetUuid"));
  std::memcpy(gpu.data(), uuid.bytes, gpu.size());
  return {};
}

// Whether this rank may take two levels.
Status check_two_levels(const DeviceLane& lane, LevelReport& report) {
  BRAID_RETURN_IF_ERROR(read_levels_setting());
  if (!lane.streams_can_wait()) {
    return Status(StatusCode::Unavailable,
                  "its streams do not wait (BRAID_CUDA_WAIT, CUDA_LAUNCH_BLOCKING, or a GPU "
                  "without stream memory operations)");
  }
  const Result<const Nccl*> nccl = Nccl::get();
  BRAID_RETURN_IF_ERROR(nccl.status());
  report.nccl_version = static_cast<uint32_t>((*nccl)->version);
  return find_gpu(lane.device(), report.gpu);
}

template <typename Said>
std::string first_failure(const std::vector<Said>& all) {
  for (size_t rank = 0; rank < all.size(); ++rank) {
    if (!all[rank].failure.is_empty())
      return fmt::format("rank {}: {}", rank, all[rank].failure.text());
  }
  return {};
}

}  // namespace

LevelsOpening::LevelsOpening(const JobRequest& request, Registry& registry, Tickets& tickets,
                             TwoLevels::Owner owner, uint64_t deadline_ns)
    : request_(request),
      registry_(registry),
      tickets_(tickets),
      owner_(std::move(owner)),
      deadline_ns_(deadline_ns) {}

LevelsOpening::~LevelsOpening() = default;

Status LevelsOpening::run(const Result<DeviceLane*>& lane, uint64_t node, LevelChoice& choice,
                          std::unique_ptr<TwoLevels>& levels) {
  BRAID_RETURN_IF_ERROR(register_dynamic(registry_, "braid levels", tensor_));
  BRAID_RETURN_IF_ERROR(agree(lane, node, choice));
  if (choice.levels == 2) BRAID_RETURN_IF_ERROR(open_both(**lane, choice, levels));
  return registry_.unregister_tensors(&tensor_, 1, [] { return Status(); });
}

template <typename Said>
Status LevelsOpening::exchange(const Said& own, std::vector<Said>& all) {
  static_assert(std::is_trivially_copyable_v<Said> && sizeof(Said) <= kLevelMessageBytes);
  const uint32_t ranks = request_.rank.world_size;
  std::vector<uint8_t> given(kLevelMessageBytes);
  std::vector<uint8_t> taken(kLevelMessageBytes * ranks);
  std::memcpy(given.data(), &own, sizeof(own));
  braid_operation operation{};
  operation.struct_size = sizeof(operation);
  operation.collective = BRAID_ALL_GATHER;
  operation.tensor = tensor_;
  operation.step = next_step_++;
  operation.dtype = BRAID_UINT8;
  operation.count = given.size();
  operation.timeout_ms = left_ms();
  operation.input = given.data();
  braid_ticket ticket = 0;
  BRAID_RETURN_IF_ERROR(tickets_.submit(&operation, &ticket));
  const Status done = tickets_.take(ticket, 0, taken.data(), taken.size());
  if (!done) {
    (void)tickets_.release(ticket);
    return done.with_context("the ranks have not agreed on levels");
  }
  all.resize(ranks);
  for (uint32_t rank = 0; rank < ranks; ++rank)
    std::memcpy(&all[rank], taken.data() + rank * kLevelMessageBytes, sizeof(Said));
  return {};
}

Status LevelsOpening::agree(const Result<DeviceLane*>& lane, uint64_t node, LevelChoice& choice) {
  LevelReport own;
  own.node = node;
  if (!lane) {
    own.no_device.set(lane.status().message());
  } else if (const Status able = check_two_levels(**lane, own); !able.is_ok()) {
    own.no_two_levels.set(able.message());
  }
  std::vector<LevelReport> all;
  BRAID_RETURN_IF_ERROR(exchange(own, all));
  choice = choose_levels(all, request_.rank.rank);
  return {};
}

// Two rounds: what is needed to meet, and whether all have met.
Status LevelsOpening::open_both(DeviceLane& lane, LevelChoice& choice,
                                std::unique_ptr<TwoLevels>& levels) {
  const auto fall_back = [&](std::string reason) {
    choice.levels = 1;
    choice.reason = std::move(reason);
    levels.reset();
  };
  const LevelPlace& place = choice.place;
  SaidIds own_ids;
  if (place.local_rank == 0) {
    const Status made = LocalLevel::make_ids(**Nccl::get(), own_ids.ids);
    if (!made) own_ids.failure.set(made.message());
  }
  std::vector<SaidIds> ids;
  BRAID_RETURN_IF_ERROR(exchange(own_ids, ids));
  if (std::string failure = first_failure(ids); !failure.empty()) {
    fall_back(std::move(failure));
    return {};
  }
  SaidOutcome own;
  const Status opened = open(lane, place, ids[place.rank_of(place.node, 0)].ids, levels);
  if (!opened) own.failure.set(opened.message());
  std::vector<SaidOutcome> outcomes;
  BRAID_RETURN_IF_ERROR(exchange(own, outcomes));
  if (std::string failure = first_failure(outcomes); !failure.empty()) {
    fall_back(std::move(failure));
  } else {
    levels->begin();
  }
  return {};
}

Status LevelsOpening::open(DeviceLane& lane, const LevelPlace& place, const LocalIds& ids,
                           std::unique_ptr<TwoLevels>& levels) {
  uint32_t tensor = 0;
  BRAID_RETURN_IF_ERROR(open_across(place, tensor));
  // The other ranks still have to hear how it went.
  const uint64_t until_ns = now_ns() + std::min(left_ms() / 2, kJoinMsMax) * 1'000'000ull;
  std::unique_ptr<LocalLevel> local;
  BRAID_RETURN_IF_ERROR(
      LocalLevel::open(**Nccl::get(), lane.device(), place, ids, until_ns, local));
  return TwoLevels::open(owner_, place, lane.device().driver(), lane.device().context(),
                         std::move(across_), tensor, std::move(local), levels);
}

// Node 0's ranks are where rank 0 is, so all of these jobs have this job's master.
Status LevelsOpening::open_across(const LevelPlace& place, uint32_t& tensor) {
  const std::string name = fmt::format("{}/across{}", request_.name, place.local_rank);
  if (name.size() > kJobNameBytesMax) {
    return make_status(StatusCode::InvalidArgument,
                       "the job's name is too long for two levels: at most {} bytes are possible",
                       kJobNameBytesMax - (name.size() - request_.name.size()));
  }
  braid_job_options options{};
  options.struct_size = sizeof(options);
  options.socket_path = request_.socket_path.c_str();
  options.name = name.c_str();
  options.rank = place.node;
  options.world_size = place.nodes;
  options.master_address = request_.master_address.c_str();
  options.master_node = request_.master_node;
  options.timeout_ms = std::max(left_ms() / 2, 1U);
  options.arena_bytes = request_.arena_bytes;
  options.token = request_.token.c_str();
  BRAID_RETURN_IF_ERROR(Job::start(&options, across_));
  BRAID_RETURN_IF_ERROR(across_->open());
  return register_dynamic(across_->registry(), "device", tensor);
}

uint32_t LevelsOpening::left_ms() const {
  const uint64_t now = now_ns();
  const uint64_t left_ms = now < deadline_ns_ ? (deadline_ns_ - now) / 1'000'000 : 0;
  return static_cast<uint32_t>(std::clamp<uint64_t>(left_ms, 1, UINT32_MAX));
}

}  // namespace braid::client
