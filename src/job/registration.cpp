// SPDX-License-Identifier: Apache-2.0
#include "job/registration.h"

#include <algorithm>
#include <utility>

#include "job/job.h"
#include "job/session.h"

namespace braid {

void RegistrationQueue::add(Change& change) {
  changes_.push_back(&change);
  if (changes_.size() == 1) change.begin();
}

void RegistrationQueue::remove(Change& change) {
  const bool was_under_way = !changes_.empty() && changes_.front() == &change;
  std::erase(changes_, &change);
  if (was_under_way && !changes_.empty()) changes_.front()->begin();
}

struct Registration::Content {
  const Bytes bytes;
  const proto::RegisterTensors& message;  // in them
  const JobHash hash;
  const CodecKinds codecs;
  uint64_t name_bytes = 0;
  PlanBook::Preparer prepare{};
  Status status{};  // of reading
  std::vector<Tensor> tensors{};
  std::shared_ptr<PlanBook::Candidate> candidate{};  // nullptr: none is planned

  void count_names() {
    for (const proto::TensorDescription* tensor : *message.tensors())
      name_bytes += tensor->name()->size();
  }
  Status read() {
    auto registered = RegisteredTensors::read(message, hash, codecs);
    if (!registered) return registered.status();
    tensors = std::move(registered->tensors);
    PlanSet::Tensors planned;
    for (const Tensor& tensor : tensors) {
      if (tensor.plan_set == 0) continue;
      planned.push_back({tensor.hash, tensor.name, tensor.dtype, tensor.count,
                         tensor.backward_order, tensor.codec, tensor.state_slots});
    }
    if (!planned.empty()) candidate = prepare(registered->set, std::move(planned));
    return Status::ok();
  }
};

Registration::Registration(Trainer trainer, RegistrationServices services, Bytes bytes,
                           const proto::RegisterTensors& message)
    : trainer_(trainer),
      services_(services),
      user_(trainer.session.credentials().uid),
      tensors_before_(trainer.tensors_charge.amount()),
      name_bytes_before_(trainer.names_charge.amount()),
      content_(new Content{std::move(bytes), message, JobHash(trainer.job.key()), trainer.codecs}) {
}

Registration::~Registration() {
  services_.work.drop(user_, this);
  services_.turns.drop(user_, this);
  trainer_.job.registrations().remove(*this);
  if (content_->bytes->size() > kSmallBytesMax) services_.work.dispose(std::move(content_));
}

Result<uint32_t> Registration::make_now() {
  status_ = take_room_for_tensors();
  if (!status_) return outcome();
  content_->count_names();
  status_ = take_room_for_names();
  if (!status_) return outcome();
  content_->prepare = trainer_.job.plans().preparer();
  status_ = content_->read();
  while (make_piece()) {
  }
  return outcome();
}

void Registration::start(std::function<void(Result<uint32_t> first)> made) {
  made_ = std::move(made);
  trainer_.job.registrations().add(*this);
}

void Registration::begin() {
  status_ = take_room_for_tensors();
  services_.work.run(
      user_, this,
      [content = content_, is_refused = !status_] {
        if (!is_refused) content->count_names();
      },
      [this] {
        if (status_) status_ = take_room_for_names();
        if (!status_) return finish();
        read();
      });
}

// Nobody else changes the job's sets meanwhile.
void Registration::read() {
  content_->prepare = trainer_.job.plans().preparer();
  services_.work.run(
      user_, this, [content = content_] { content->status = content->read(); },
      [this] {
        status_ = content_->status;
        services_.turns.add(user_, this, [this] {
          if (make_piece()) return true;
          finish();
          return false;
        });
      });
}

Status Registration::take_room_for_tensors() {
  const size_t count = content_->message.tensors()->size();
  BRAID_RETURN_IF_ERROR(trainer_.table.check_room(count));
  return trainer_.tensors_charge.set(tensors_before_ + count);
}

Status Registration::take_room_for_names() {
  return trainer_.names_charge.set(name_bytes_before_ + content_->name_bytes);
}

bool Registration::make_piece() {
  if (!status_) return false;
  std::vector<Tensor>& tensors = content_->tensors;
  if (phase_ == Phase::AddPlanned) {
    if (content_->candidate != nullptr)
      status_ = trainer_.job.plans().add(trainer_.session.local_rank(), *content_->candidate);
    phase_ = Phase::Add;
    done_ = planned_ = 0;
    if (status_) first_ = trainer_.table.begin(tensors.size());
    return status_.is_ok() && !tensors.empty();
  }
  const size_t count = std::min(kPieceTensors, tensors.size() - done_);
  const auto piece = std::span(tensors).subspan(done_, count);
  const auto planned = static_cast<size_t>(
      std::ranges::count_if(piece, [](const Tensor& tensor) { return tensor.plan_set != 0; }));
  if (phase_ == Phase::Check) {
    for (const Tensor& tensor : piece) {
      if (status_) status_ = trainer_.table.check(tensor);
    }
    if (status_) status_ = trainer_.job.check_registered(trainer_.session, piece);
    if (status_ && planned != 0)
      status_ = trainer_.job.plans().check(trainer_.session.local_rank(), *content_->candidate,
                                           planned_, planned);
  } else {
    trainer_.job.add_registered(piece);
    if (planned != 0) trainer_.job.plans().index(*content_->candidate, planned_, planned);
    for (Tensor& tensor : piece) trainer_.table.add(std::move(tensor));
  }
  done_ += count;
  planned_ += planned;
  if (!status_) return false;
  if (done_ < tensors.size()) return true;
  if (phase_ == Phase::Add) return false;
  phase_ = Phase::AddPlanned;
  return true;
}

// Nothing was added where something was refused.
Result<uint32_t> Registration::outcome() {
  if (status_) return first_;
  (void)trainer_.tensors_charge.set(tensors_before_);
  (void)trainer_.names_charge.set(name_bytes_before_);
  return status_;
}

void Registration::finish() {
  trainer_.job.registrations().remove(*this);
  std::exchange(made_, nullptr)(outcome());  // which may end this object
}

}  // namespace braid
