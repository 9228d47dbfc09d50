// SPDX-License-Identifier: Apache-2.0
#include "job/tensor_table.h"

#include <algorithm>
#include <iterator>
#include <unordered_map>

#include "base/hash.h"
#include "messages/tensor_bytes.h"
#include "proto/update.h"

namespace braid {
namespace {

// `set_bytes`: of the planned ones before it.
Status read_tensor(const proto::TensorDescription& description, const JobHash& job,
                   TensorBytes& set_bytes, Tensor& tensor) {
  tensor.name = std::make_shared<const std::string>(description.name()->str());
  if (tensor.name->empty() || tensor.name->size() > RegisteredTensors::kNameBytesMax) {
    return make_status(StatusCode::InvalidArgument,
                       "a tensor's name has {} bytes; 1 to {} are possible", tensor.name->size(),
                       RegisteredTensors::kNameBytesMax);
  }
  if (description.dtype() >= kDataTypeCount) {
    return make_status(StatusCode::InvalidArgument, "tensor '{}': no such dtype: {}", *tensor.name,
                       description.dtype());
  }
  tensor.hash = job.of_name(*tensor.name);
  tensor.dtype = static_cast<DataType>(description.dtype());
  tensor.count = description.count();
  tensor.backward_order = description.backward_order();
  tensor.is_dynamic = description.dynamic();
  if (!tensor.is_dynamic) {
    BRAID_RETURN_IF_ERROR(description.planned()
                              ? set_bytes.add(*tensor.name, tensor.dtype, tensor.count)
                              : TensorBytes::check(*tensor.name, tensor.dtype, tensor.count));
  }
  if (description.planned() && tensor.is_dynamic) {
    return make_status(StatusCode::InvalidArgument,
                       "tensor '{}' is both dynamic and planned; a plan needs registered counts",
                       *tensor.name);
  }
  return Status::ok();
}

// A codec knows sums of float32, and what it loses is kept for the tensors of a set.
Status read_codec(const proto::TensorDescription& description, const CodecKinds& allowed,
                  Tensor& tensor) {
  if (description.codec() == nullptr) return Status::ok();
  const auto codec = parse_codec_spec(description.codec()->string_view());
  if (!codec) return codec.status().with_context(fmt::format("tensor '{}'", *tensor.name));
  tensor.codec = *codec;
  if (tensor.codec.kind == CodecKind::None) return Status::ok();
  if (!allowed.test(static_cast<size_t>(tensor.codec.kind))) {
    return make_status(StatusCode::PermissionDenied,
                       "tensor '{}' has the codec {}, which this node does not allow; debug.codecs "
                       "allows {}",
                       *tensor.name, to_string(tensor.codec), codec_names(allowed));
  }
  if (!description.planned()) {
    return make_status(StatusCode::InvalidArgument,
                       "tensor '{}' has the codec {} and is not planned; only planned tensors, a "
                       "model's gradients, can have one",
                       *tensor.name, to_string(tensor.codec));
  }
  if (tensor.dtype != DataType::Float32) {
    return make_status(StatusCode::InvalidArgument,
                       "tensor '{}' has the codec {} and is of {}; codecs are for float32",
                       *tensor.name, to_string(tensor.codec), to_string(tensor.dtype));
  }
  return Status::ok();
}

// Owners keep state for the floats of a set.
Status read_state(const proto::TensorDescription& description, Tensor& tensor) {
  tensor.state_slots = description.state_slots();
  if (tensor.state_slots == 0) return Status::ok();
  if (tensor.state_slots > kStateSlotCount) {
    return make_status(StatusCode::InvalidArgument,
                       "tensor '{}' has {} state slots; 0 to {} are possible", *tensor.name,
                       tensor.state_slots, kStateSlotCount);
  }
  if (!description.planned()) {
    return make_status(StatusCode::InvalidArgument,
                       "tensor '{}' has state slots and is not planned; only planned tensors, a "
                       "model's weights, can have them",
                       *tensor.name);
  }
  if (!is_float(tensor.dtype)) {
    return make_status(StatusCode::InvalidArgument,
                       "tensor '{}' has state slots and is of {}; optimizers are for floats",
                       *tensor.name, to_string(tensor.dtype));
  }
  return Status::ok();
}

// Tensors that are planned together have all the same state, or none.
Status check_same_state(const std::vector<Tensor>& added) {
  const Tensor* first = nullptr;
  for (const Tensor& tensor : added) {
    if (tensor.plan_set == 0) continue;
    if (first == nullptr) first = &tensor;
    const bool is_same = tensor.state_slots == first->state_slots &&
                         (tensor.state_slots == 0 || (tensor.dtype == DataType::Float64) ==
                                                         (first->dtype == DataType::Float64));
    if (is_same) continue;
    return make_status(StatusCode::InvalidArgument,
                       "tensor '{}' ({}, {} state slots) is registered with '{}' ({}, {}): planned "
                       "tensors of one registration have as many slots, and float64 has state of "
                       "its own; register them apart",
                       *tensor.name, to_string(tensor.dtype), tensor.state_slots, *first->name,
                       to_string(first->dtype), first->state_slots);
  }
  return Status::ok();
}

// The name of the tensors before, and this one.
uint64_t set_with(uint64_t set, const Tensor& tensor, const JobHash& job) {
  set = job.of(JobHash::Set, {set, tensor.hash, tensor.count, tensor.backward_order,
                              static_cast<uint64_t>(tensor.dtype)});
  if (tensor.codec.kind != CodecKind::None)
    set = job.of(JobHash::Set, {set, fnv1a64(to_string(tensor.codec))});
  if (tensor.state_slots != 0) set = job.of(JobHash::Set, {set, tensor.state_slots});
  return set;
}

Status already_exists(const Tensor& tensor, const Tensor& same) {
  return make_status(
      StatusCode::AlreadyExists, "tensor '{}' is registered already{}", *tensor.name,
      *same.name == *tensor.name
          ? std::string()
          : fmt::format(", as '{}': their names have the same hash in this job", *same.name));
}

// There is something to be kept for each.
Status check_codec_count(const Tensor& tensor, std::vector<CodecSpec>& codecs) {
  if (tensor.codec.kind == CodecKind::None ||
      std::ranges::find(codecs, tensor.codec) != codecs.end())
    return Status::ok();
  if (codecs.size() == RegisteredTensors::kCodecsMax) {
    return make_status(StatusCode::InvalidArgument,
                       "with tensor '{}' ({}) the tensors of one registration have more than {} "
                       "different codecs",
                       *tensor.name, to_string(tensor.codec), RegisteredTensors::kCodecsMax);
  }
  codecs.push_back(tensor.codec);
  return Status::ok();
}

}  // namespace

Result<RegisteredTensors> RegisteredTensors::read(const proto::RegisterTensors& message,
                                                  const JobHash& job, const CodecKinds& allowed) {
  RegisteredTensors registered;
  std::vector<Tensor>& added = registered.tensors;
  std::unordered_map<uint64_t, size_t> places;
  TensorBytes set_bytes;
  std::vector<CodecSpec> codecs;
  CodecKinds possible = allowed;
  possible.set(static_cast<size_t>(CodecKind::None));
  for (const proto::TensorDescription* description : *message.tensors()) {
    Tensor tensor;
    BRAID_RETURN_IF_ERROR(read_tensor(*description, job, set_bytes, tensor));
    BRAID_RETURN_IF_ERROR(read_codec(*description, possible, tensor));
    BRAID_RETURN_IF_ERROR(check_codec_count(tensor, codecs));
    BRAID_RETURN_IF_ERROR(read_state(*description, tensor));
    if (description->planned()) {
      tensor.plan_set = 1;  // until all are known
      registered.set = set_with(registered.set, tensor, job);
    }
    const auto [same, is_new] = places.try_emplace(tensor.hash, added.size());
    if (!is_new) return already_exists(tensor, added[same->second]);
    added.push_back(std::move(tensor));
  }
  BRAID_RETURN_IF_ERROR(check_same_state(added));
  for (Tensor& tensor : added) {
    if (tensor.plan_set != 0) tensor.plan_set = registered.set;
  }
  return registered;
}

Status TensorTable::check(const Tensor& tensor) const {
  if (const Tensor* same = find_hash(tensor.hash); same != nullptr)
    return already_exists(tensor, *same);
  if (!ended_.contains(tensor.hash)) return Status::ok();
  return make_status(StatusCode::AlreadyExists,
                     "tensor '{}' was unregistered before; register it under another name",
                     *tensor.name);
}

Status TensorTable::check_room(size_t count) const {
  if (count > kTensorsMax - size_) {
    return make_status(StatusCode::ResourceExhausted, "a trainer can register {} tensors at most",
                       kTensorsMax);
  }
  if (count > UINT32_MAX - next_handle_) {
    return make_status(StatusCode::ResourceExhausted,
                       "a trainer can register {} tensors at most, with those that it has "
                       "unregistered since",
                       UINT32_MAX);
  }
  return Status::ok();
}

uint32_t TensorTable::begin(size_t count) {
  if (count != 0) registrations_[next_handle_].tensors.reserve(count);
  return next_handle_;
}

void TensorTable::add(Tensor tensor) {
  by_hash_.add(tensor.hash, next_handle_++);
  registrations_.rbegin()->second.tensors.push_back(std::move(tensor));
  ++size_;
}

template <typename AnyRegistrations>
auto TensorTable::registration_of(AnyRegistrations& registrations, uint32_t handle) {
  const auto after = registrations.upper_bound(handle);
  if (after == registrations.begin()) return registrations.end();
  const auto found = std::prev(after);
  return handle - found->first < found->second.tensors.size() ? found : registrations.end();
}

Tensor* TensorTable::find(uint32_t handle) {
  const auto found = registration_of(registrations_, handle);
  return found == registrations_.end() ? nullptr : &found->second.tensors[handle - found->first];
}

const Tensor* TensorTable::find(uint32_t handle) const {
  const auto found = registration_of(registrations_, handle);
  return found == registrations_.end() ? nullptr : &found->second.tensors[handle - found->first];
}

void TensorTable::hold(uint32_t handle) {
  ++registration_of(registrations_, handle)->second.operations;
}

void TensorTable::let_go(uint32_t handle) {
  --registration_of(registrations_, handle)->second.operations;
}

const Tensor* TensorTable::find_hash(uint64_t hash) const {
  const auto* handle = by_hash_.find(hash);
  return handle == nullptr ? nullptr : find(*handle);
}

Result<TensorTable::Registered> TensorTable::take(uint32_t first, uint32_t count) {
  const auto found = registration_of(registrations_, first);
  if (found == registrations_.end())
    return make_status(StatusCode::NotFound, "tensor {} is not registered", first);
  const size_t size = found->second.tensors.size();
  if (found->first != first || size != count) {
    return make_status(
        StatusCode::InvalidArgument,
        "{} tensors from {} on are no whole registration; that of tensor {} has {}, from {} on",
        count, first, first, size, found->first);
  }
  if (found->second.operations != 0) {
    return make_status(StatusCode::InvalidArgument,
                       "'{}' and the tensors registered with it cannot be unregistered: operations "
                       "of theirs that were not given back: {}",
                       *found->second.tensors.front().name, found->second.operations);
  }
  Registered taken = std::move(found->second);
  registrations_.erase(found);
  size_ -= size;
  return taken;
}

void TensorTable::end(const Tensor& tensor) {
  by_hash_.remove(tensor.hash);
  ended_.add(tensor.hash);
}

}  // namespace braid
