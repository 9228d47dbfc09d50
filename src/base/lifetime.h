// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <utility>

namespace braid {

// Tells tasks that an object hands out, and that may run after its end, whether it is still there.
// The object has a Lifetime as its last member, which so ends before the others do, or calls end()
// first in its destructor. One thread: the lifetime, its tokens and what is guarded.
class Lifetime {
 public:
  // Outlives the lifetime.
  class Token {
   public:
    bool is_over() const { return *is_over_; }

   private:
    friend class Lifetime;
    explicit Token(std::shared_ptr<const bool> is_over) : is_over_(std::move(is_over)) {}
    std::shared_ptr<const bool> is_over_;
  };

  Lifetime() = default;
  Lifetime(const Lifetime&) = delete;
  Lifetime& operator=(const Lifetime&) = delete;
  ~Lifetime() { end(); }

  void end() { *is_over_ = true; }
  Token token() const { return Token(is_over_); }

  // `task`, which does nothing once this has ended.
  template <typename Task>
  auto guard(Task task) const {
    return [token = token(), task = std::move(task)](auto&&... arguments) mutable {
      if (!token.is_over()) task(std::forward<decltype(arguments)>(arguments)...);
    };
  }

 private:
  const std::shared_ptr<bool> is_over_ = std::make_shared<bool>(false);
};

}  // namespace braid
