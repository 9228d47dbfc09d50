// SPDX-License-Identifier: Apache-2.0
#include "job/unregistration.h"

#include <algorithm>
#include <span>
#include <utility>

#include "job/job.h"
#include "job/session.h"

namespace braid {

Unregistration::Unregistration(const Registration::Trainer& trainer, RegistrationServices services,
                               TensorTable::Registered removed)
    : trainer_(trainer),
      services_(services),
      user_(trainer.session.credentials().uid),
      removed_(std::make_shared<TensorTable::Registered>(std::move(removed))) {}

Unregistration::~Unregistration() {
  services_.turns.drop(user_, this);
  trainer_.job.registrations().remove(*this);
  if (removed_->tensors.size() > Registration::kPieceTensors)
    services_.work.dispose(std::move(removed_));
  if (set_ != nullptr) services_.work.dispose(std::move(set_));
}

void Unregistration::start(std::function<void()> done) {
  done_ = std::move(done);
  trainer_.job.registrations().add(*this);
}

void Unregistration::begin() {
  const auto planned = std::ranges::find_if(
      removed_->tensors, [](const Tensor& tensor) { return tensor.plan_set != 0; });
  if (planned != removed_->tensors.end())
    set_ = trainer_.job.plans().remove(trainer_.session.local_rank(), planned->plan_set);
  services_.turns.add(user_, this, [this] {
    if (remove_piece()) return true;
    finish();
    return false;
  });
}

bool Unregistration::remove_piece() {
  const std::span<const Tensor> tensors = removed_->tensors;
  const size_t count = std::min(Registration::kPieceTensors, tensors.size() - done_tensors_);
  const auto piece = tensors.subspan(done_tensors_, count);
  trainer_.job.remove_registered(piece);
  for (const Tensor& tensor : piece) {
    trainer_.table.end(tensor);
    if (set_ != nullptr && tensor.plan_set != 0)
      trainer_.job.plans().remove_from_index(tensor.hash);
    name_bytes_ += tensor.name->size();
  }
  done_tensors_ += count;
  return done_tensors_ < tensors.size();
}

void Unregistration::finish() {
  (void)trainer_.tensors_charge.set(trainer_.tensors_charge.amount() - removed_->tensors.size());
  (void)trainer_.names_charge.set(trainer_.names_charge.amount() - name_bytes_);
  trainer_.job.registrations().remove(*this);
  std::exchange(done_, nullptr)();  // which may end this object
}

}  // namespace braid
