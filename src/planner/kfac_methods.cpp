// SPDX-License-Identifier: Apache-2.0
#include "planner/kfac_methods.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include <fmt/ranges.h>

#include "planner/all_planners.h"
#include "planner/greedy_merge.h"
#include "planner/joint_plan.h"

namespace braid {
namespace {

constexpr std::array<KfacMethod, 7> kKfacMethods = {{
    {"d-kfac", "factors are averaged after the passes, and everybody inverts all"},
    {"mpd-kfac", "the same, but inverses go around"},
    {"pipeline", "d-kfac with SPD-KFAC's pipelining alone"},
    {"balance", "d-kfac with SPD-KFAC's load balancing alone"},
    {"spd-kfac", "both (Shi, Zhang, Li, ICDCS 2021), as its code has it"},
    {"spd-kfac:t", "the same with the paper's test of what everybody inverts"},
    {"braid", "ours: planned jointly, placed by place(), and inverted as factors come"},
}};

// A place() rule, or everybody.
constexpr std::string_view kEverybodyInverts = "everybody";

using KfacPlans = std::array<Plan, KfacStreams::kKinds>;

// Makes the schedules of all methods, for one step and link.
class KfacSchedules {
 public:
  KfacSchedules(const KfacStep& step, const KfacLink& link)
      : step_(step),
        link_(link),
        made_(streams_of(step)),
        inverses_(inverses_of(step)),
        cost_(link.ranks > 1 ? link.all_reduce : LinearCost{}) {}

  Result<KfacResult> of(std::string_view method) {
    if (method == "d-kfac") return fixed(after_passes(), false, kEverybodyInverts);
    if (method == "mpd-kfac") return fixed(after_passes(), false, "round-robin");
    if (method == "pipeline") return fixed(spd(), true, kEverybodyInverts);
    if (method == "balance") return fixed(after_passes(), false, "lbp");
    if (method == "spd-kfac") return fixed(spd(), true, "lbp");
    if (method == "spd-kfac:t") return fixed(spd(), true, "lbp:t");
    return best();
  }

 private:
  struct Plans {
    std::string_view name;
    KfacPlans plans;
    bool is_pipelined = true;
  };
  struct Owners {
    std::vector<uint32_t> owners;
    std::vector<uint32_t> order;
  };

  const Workload& stream(size_t kind) const { return made_.streams[kind]; }

  Plan alone(const Planner& planner, size_t kind) const {
    return planner.plan(stream(kind), cost_, {});
  }

  KfacPlans after_passes() const {
    return {alone(single_planner(), KfacStreams::FactorsA),
            alone(single_planner(), KfacStreams::FactorsG),
            alone(mgwfbp_planner(), KfacStreams::Gradients)};
  }

  KfacPlans spd() const {
    std::vector<uint64_t> a;
    std::vector<uint64_t> g;
    for (const KfacStep::Layer& layer : step_.layers) {
      if (layer.a) a.push_back(step_.square_bytes(*layer.a));
      if (layer.g) g.push_back(step_.square_bytes(*layer.g));
    }
    std::ranges::reverse(g);
    return {spd_factor_plan(stream(KfacStreams::FactorsA), a, cost_),
            spd_factor_plan(stream(KfacStreams::FactorsG), g, cost_),
            alone(mgwfbp_planner(), KfacStreams::Gradients)};
  }

  KfacPlans one_by_one(const Planner& planner) const {
    return {alone(planner, KfacStreams::FactorsA), alone(planner, KfacStreams::FactorsG),
            alone(planner, KfacStreams::Gradients)};
  }

  KfacPlans jointly() const {
    JointPlan joint = plan_jointly(made_.streams, cost_);
    return {std::move(joint.plans[0]), std::move(joint.plans[1]), std::move(joint.plans[2])};
  }

  Result<Owners> owners(std::string_view rule) const {
    if (rule == kEverybodyInverts) {
      return Owners{std::vector<uint32_t>(inverses_.size(), Placement::kEverybody), {}};
    }
    auto placement = place(inverses_, link_.ranks, rule, link_.spread);
    if (!placement) return placement.status();
    return Owners{std::move(placement->owners), std::move(placement->order)};
  }

  Result<KfacResult> fixed(KfacPlans plans, bool is_pipelined, std::string_view rule) const {
    auto placed = owners(rule);
    if (!placed) return placed.status();
    KfacResult result;
    result.schedule.plans = std::move(plans);
    result.schedule.is_pipelined = is_pipelined;
    result.schedule.owners = std::move(placed->owners);
    result.schedule.order = std::move(placed->order);
    result.times = simulate_kfac(step_, result.schedule, link_);
    return result;
  }

  // The schedule that the simulator likes best. All other methods' schedules are among them.
  Result<KfacResult> best() const {
    const std::vector<Plans> all = {{"planned jointly", jointly()},
                                    {"planned one by one", one_by_one(exact_planner())},
                                    {"planned as spd-kfac", spd()},
                                    {"factors after the passes", after_passes(), false}};
    std::optional<KfacResult> best;
    for (const std::string_view rule :
         {std::string_view("best"), std::string_view("lbp:t"), std::string_view("lbp"),
          std::string_view("round-robin"), kEverybodyInverts}) {
      const auto placed = owners(rule);
      if (!placed) return placed.status();
      for (const Plans& plans : all) {
        for (const bool waits : {false, true}) {
          KfacResult result{
              {plans.plans, plans.is_pipelined, waits, placed->owners, placed->order}, {}, {}};
          result.times = simulate_kfac(step_, result.schedule, link_);
          if (best && result.times.total_seconds >= best->times.total_seconds) continue;
          result.chosen = fmt::format("{}; placed by {}; inverses begin {}", plans.name, rule,
                                      waits ? "when all factors are averaged" : "one by one");
          best = std::move(result);
        }
      }
    }
    return *std::move(best);
  }

  const KfacStep& step_;
  const KfacLink& link_;
  const KfacStreams made_;
  const std::vector<PlacedItem> inverses_;
  const LinearCostModel cost_;
};

}  // namespace

std::span<const KfacMethod> kfac_methods() { return kKfacMethods; }

Result<KfacResult> simulate_kfac_method(const KfacStep& step, const KfacLink& link,
                                        std::string_view method) {
  if (std::ranges::find(kKfacMethods, method, &KfacMethod::name) == kKfacMethods.end()) {
    std::array<std::string_view, kKfacMethods.size()> names;
    std::ranges::transform(kKfacMethods, names.begin(), &KfacMethod::name);
    return make_status(StatusCode::InvalidArgument, "no method is called '{}'; right are {}",
                       method, fmt::join(names, ", "));
  }
  if (link.ranks == 0 || link.ranks > Placement::kRanksMax) {
    return make_status(StatusCode::InvalidArgument, "{} ranks; right are 1 to {}", link.ranks,
                       Placement::kRanksMax);
  }
  return KfacSchedules(step, link).of(method);
}

Plan spd_factor_plan(const Workload& stream, std::span<const uint64_t> square_bytes,
                     const CostModel& cost) {
  return greedy_merge_by(
      stream,
      [&](const Plan::Group& group, uint64_t bytes) {
        return cost.phases(group.end - group.begin == 1 ? square_bytes[group.begin] : bytes);
      },
      [](const MergeQuestion& question) {
        return question.next_ready_seconds - question.start_seconds < question.startup_seconds;
      });
}

}  // namespace braid
