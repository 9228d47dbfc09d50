// SPDX-License-Identifier: Apache-2.0
#include "planning/plan_set.h"

#include <algorithm>

#include "base/assert.h"
#include "base/hash.h"
#include "messages/tensor_bytes.h"

namespace braid {

namespace {

std::vector<PlanSet::Tensor> in_order_of_backward(std::vector<PlanSet::Tensor> tensors) {
  std::stable_sort(tensors.begin(), tensors.end(),
                   [](const PlanSet::Tensor& a, const PlanSet::Tensor& b) {
                     return a.backward_order < b.backward_order;
                   });
  return tensors;
}

// The hash of dtypes and counts, in order.
uint64_t hash_of(const PlanSet::Tensors& tensors) {
  uint64_t hash = fnv1a64("tensors");
  for (const PlanSet::Tensor& tensor : tensors)
    hash = mix64(hash ^ mix64(tensor.count * kDataTypeCount + static_cast<uint64_t>(tensor.dtype)));
  return hash;
}

const CodecSpec kPlainElements;

}  // namespace

std::vector<std::vector<uint64_t>> part_groups(
    std::span<const std::vector<uint64_t>> groups,
    const std::function<bool(uint64_t tensor)>& is_plain) {
  std::vector<std::vector<uint64_t>> parted;
  for (const std::vector<uint64_t>& group : groups) {
    std::vector<uint64_t> same, others;
    for (const uint64_t tensor : group)
      (is_plain(tensor) == is_plain(group.front()) ? same : others).push_back(tensor);
    parted.push_back(std::move(same));
    if (!others.empty()) parted.push_back(std::move(others));
  }
  return parted;
}

bool PlanSet::Tensor::operator==(const Tensor& other) const {
  return hash == other.hash && *name == *other.name && dtype == other.dtype &&
         count == other.count && backward_order == other.backward_order && codec == other.codec &&
         state_slots == other.state_slots;
}

Status PlanSet::check_sizes(std::span<const Tensor> tensors) {
  TensorBytes all;
  for (const Tensor& tensor : tensors)
    BRAID_RETURN_IF_ERROR(all.add(*tensor.name, tensor.dtype, tensor.count));
  return Status::ok();
}

// All sums of counts below, of groups and codecs as well, are of some of the set's tensors, each
// once: none is larger than that of all.
PlanSet::PlanSet(const JobHash& job, uint64_t id, Tensors registered)
    : job_(job),
      id_(id),
      shared_tensors_(std::make_shared<const Tensors>(in_order_of_backward(std::move(registered)))),
      tensors_(*shared_tensors_) {
  BRAID_ASSERT(!tensors_.empty() && check_sizes(tensors_).is_ok(),
               "a set has tensors whose sizes were checked");
  for (uint32_t i = 0; i < tensors_.size(); ++i) {
    index_[tensors_[i].hash] = i;
    first_elements_.push_back(elements_);
    elements_ += tensors_[i].count;
    bytes_ += tensors_[i].bytes();
  }
  tensors_hash_ = hash_of(tensors_);
  find_codecs();
  add(0, 0, first_groups());
}

void PlanSet::find_codecs() {
  coded_.resize(tensors_.size());
  for (uint32_t i = 0; i < tensors_.size(); ++i) {
    const Tensor& tensor = tensors_[i];
    if (tensor.codec.kind == CodecKind::None) continue;
    const auto known = std::find(codecs_.begin(), codecs_.end(), tensor.codec);
    const auto codec = static_cast<uint32_t>(known - codecs_.begin());
    if (known == codecs_.end()) {
      codecs_.push_back(tensor.codec);
      coded_elements_.push_back(0);
    }
    coded_[i] = {codec, coded_elements_[codec]};
    coded_elements_[codec] += tensor.count;
  }
}

const CodecSpec& PlanSet::codec_in(const Version& version, uint32_t tensor) const {
  return version.is_plain[tensor] ? kPlainElements : tensors_[tensor].codec;
}

// A reduction has one dtype and one codec. Before there is a plan tensors have their own.
bool PlanSet::go_together(uint32_t tensor, uint32_t other) const {
  const auto codec = [this](uint32_t i) -> const CodecSpec& {
    return plans_.empty() ? tensors_[i].codec : current_codec(i);
  };
  return tensors_[tensor].dtype == tensors_[other].dtype && codec(tensor) == codec(other);
}

std::vector<std::vector<uint64_t>> PlanSet::first_groups() const {
  // Each kind of tensors has one open group at a time, so kinds that take turns are merged, too.
  struct Open {
    uint32_t tensor = 0;  // of its kind
    size_t group = 0;
    uint64_t room = 0;
  };
  std::vector<std::vector<uint64_t>> groups;
  std::vector<Open> open;
  for (uint32_t i = 0; i < tensors_.size(); ++i) {
    const uint64_t bytes = tensors_[i].bytes();
    auto own = std::find_if(open.begin(), open.end(),
                            [&](const Open& one) { return go_together(one.tensor, i); });
    if (own == open.end()) own = open.insert(own, {i, 0, 0});
    if (own->tensor == i || bytes > own->room) {
      own->group = groups.size();
      own->room = groups.empty() ? kFirstGroupBytes : kGroupBytes;
      groups.emplace_back();
    }
    groups[own->group].push_back(tensors_[i].hash);
    own->room -= std::min(own->room, bytes);
  }
  return groups;
}

std::optional<uint32_t> PlanSet::index_of(uint64_t hash) const {
  const auto position = index_.find(hash);
  return position == index_.end() ? std::nullopt : std::optional(position->second);
}

bool PlanSet::are_of(const Tensors& set, Tensors registered) {
  return registered.size() == set.size() && in_order_of_backward(std::move(registered)) == set;
}

const PlanSet::Version& PlanSet::version_of(uint64_t step) const {
  // Newest first: nearly always it is the one.
  for (auto version = plans_.rbegin(); version != plans_.rend(); ++version) {
    if (version->plan.from_step <= step) return *version;
  }
  return plans_.front();
}

Status PlanSet::check(std::span<const std::vector<uint64_t>> groups) const {
  std::vector<bool> seen(tensors_.size(), false);
  size_t tensors = 0;
  for (const std::vector<uint64_t>& group : groups) {
    if (group.empty()) return {StatusCode::Protocol, "a plan has a group without tensors"};
    std::optional<uint32_t> first;
    for (const uint64_t hash : group) {
      const auto index = index_of(hash);
      if (!index || seen[*index])
        return {StatusCode::Protocol, "a plan names a tensor twice or one that it is not for"};
      seen[*index] = true;
      ++tensors;
      if (!go_together(first.value_or(*index), *index))
        return {StatusCode::Protocol, "a plan merges tensors of different dtypes or codecs"};
      first = *index;
    }
  }
  if (tensors != tensors_.size())
    return {StatusCode::Protocol, "a plan leaves out tensors that it is for"};
  return Status::ok();
}

bool PlanSet::merges_as(std::span<const std::vector<uint64_t>> groups) const {
  const Version& latest = plans_.back();
  return std::ranges::all_of(groups, [&](const std::vector<uint64_t>& group) {
    const uint32_t place = latest.places[index_.at(group.front())].group;
    return latest.plan.groups[place]->members.size() == group.size() &&
           std::ranges::all_of(
               group, [&](uint64_t hash) { return latest.places[index_.at(hash)].group == place; });
  });
}

Status PlanSet::check_plain(std::span<const uint64_t> tensors) const {
  for (const uint64_t hash : tensors) {
    const auto index = index_of(hash);
    if (!index || !coded_[*index])
      return {StatusCode::Protocol, "a plan ends the codec of a tensor that has none"};
  }
  return Status::ok();
}

void PlanSet::add(uint32_t number, uint64_t from_step,
                  std::span<const std::vector<uint64_t>> groups) {
  BRAID_ASSERT(plans_.empty() || from_step > plans_.back().plan.from_step,
               "plans follow each other");
  Version version;
  version.plan.number = number;
  version.plan.from_step = from_step;
  version.is_plain.resize(tensors_.size());
  if (!plans_.empty()) {
    version.plan.settings = plans_.back().plan.settings;
    version.is_plain = plans_.back().is_plain;
  }
  make_groups(version, groups);
  append(std::move(version));
}

void PlanSet::make_groups(Version& version, std::span<const std::vector<uint64_t>> groups) const {
  version.plan.groups.clear();
  version.places.assign(tensors_.size(), {});
  for (const std::vector<uint64_t>& hashes : groups) {
    auto group = std::make_shared<TensorGroup>();
    for (const uint64_t hash : hashes) {
      const auto index = index_of(hash);
      BRAID_ASSERT(index.has_value(), "the groups were checked");
      const Tensor& tensor = tensors_[*index];
      const uint64_t offset = group->count * element_bytes(tensor.dtype);
      group->dtype = tensor.dtype;
      const uint64_t first_element = coded_[*index] ? coded_[*index]->first_element : 0;
      group->members.push_back(
          {hash, tensor.name, tensor.count, offset, first_element, first_elements_[*index]});
      group->count += tensor.count;
      group->last_place = std::max(group->last_place, *index);
      version.places[*index] = {static_cast<uint32_t>(version.plan.groups.size()),
                                static_cast<uint32_t>(group->members.size() - 1)};
      if (hashes.size() == 1) continue;
      group->hash = job_.of(JobHash::Group, {group->hash, hash, tensor.count});
    }
    version.plan.groups.push_back(std::move(group));
  }
}

void PlanSet::add(uint32_t number, uint64_t from_step, const TransferSettings& settings,
                  bool reports_steps) {
  BRAID_ASSERT(from_step > plans_.back().plan.from_step, "plans follow each other");
  Version version = plans_.back();
  version.plan.number = number;
  version.plan.from_step = from_step;
  version.plan.settings = std::make_shared<const TransferSettings>(settings);
  version.plan.reports_steps = reports_steps;
  append(std::move(version));
}

void PlanSet::add_plain(uint32_t number, uint64_t from_step, std::span<const uint64_t> tensors) {
  BRAID_ASSERT(from_step > plans_.back().plan.from_step, "plans follow each other");
  Version version = plans_.back();
  version.plan.number = number;
  version.plan.from_step = from_step;
  for (const uint64_t hash : tensors) version.is_plain[index_.at(hash)] = true;
  std::vector<std::vector<uint64_t>> groups;
  for (const auto& group : version.plan.groups) {
    auto& hashes = groups.emplace_back();
    for (const TensorGroup::Member& member : group->members) hashes.push_back(member.tensor);
  }
  make_groups(version, part_groups(groups, [&](uint64_t hash) {
                return static_cast<bool>(version.is_plain[index_.at(hash)]);
              }));
  append(std::move(version));
}

// All tensors of a group have one codec.
void PlanSet::make_forms(Version& version) const {
  version.forms.clear();
  for (const auto& group : version.plan.groups) {
    auto form = std::make_shared<OperationForm>();
    form->plan = version.plan.number;
    form->group = group;
    form->settings = version.plan.settings;
    form->codec = codec_in(version, group->last_place);
    if (form->codec.kind != CodecKind::None && !kept_.coded.empty())
      form->coded = kept_.coded[coded_[group->last_place]->codec];
    form->shard = kept_.shard;
    form->sample_every_steps = kept_.sample_every_steps;
    version.forms.push_back(std::move(form));
  }
}

void PlanSet::keep(Kept kept) {
  kept_ = std::move(kept);
  if (kept_.coded.empty() && kept_.shard == nullptr) return;  // the forms say so already
  for (Version& version : plans_) make_forms(version);
}

void PlanSet::append(Version version) {
  make_forms(version);
  plans_.push_back(std::move(version));
  if (plans_.size() > kPlansKept) plans_.pop_front();
}

}  // namespace braid
