// SPDX-License-Identifier: Apache-2.0
#include "telling/parted_answers.h"

#include <algorithm>
#include <utility>

namespace braid {

void PartedAnswers::send(std::shared_ptr<const std::string> text, Send send) {
  Answer answer{std::move(text), std::move(send)};
  if (!send_next(answer)) return;
  answers_.push_back(std::move(answer));
  if (!timer_.is_active()) timer_.start_repeating(1, [this] { send_one(); });
}

// False: it was the last one.
bool PartedAnswers::send_next(Answer& answer) {
  Part part;
  part.parts = static_cast<uint32_t>(
      std::max<size_t>(1, (answer.text->size() + kPartBytes - 1) / kPartBytes));
  part.number = answer.sent++;
  part.text = std::string_view(*answer.text).substr(part.number * kPartBytes, kPartBytes);
  return answer.send(part) && !part.is_last();
}

void PartedAnswers::send_one() {
  Answer answer = std::move(answers_.front());
  answers_.pop_front();
  if (send_next(answer)) answers_.push_back(std::move(answer));
  if (answers_.empty()) timer_.stop();
}

PartedText::Outcome PartedText::add(std::string_view text, uint32_t number, uint32_t parts,
                                    size_t bytes_max) {
  parts = std::max(parts, 1U);
  const bool is_next = number == next_ && number < parts && (number == 0 || parts == parts_);
  if (!is_next || text.size() > bytes_max || text_.size() > bytes_max - text.size())
    return Outcome::Refused;
  parts_ = parts;
  ++next_;
  text_ += text;
  return next_ == parts_ ? Outcome::Complete : Outcome::NeedsMore;
}

}  // namespace braid
