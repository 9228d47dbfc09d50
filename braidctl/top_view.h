// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "braidctl/ctl_jobs.h"
#include "braidctl/terminal.h"

namespace braid {

// How much what bounds a job asks for attention.
enum class Trouble : uint8_t {
  None,    // the network, or the computation
  Notice,  // something could be better: a late rank, another plan, other jobs on the rails
  Fault    // something is broken: nodes that do not answer, a stalled job, a rail or a GPU
};
Trouble trouble_of(const JobLine& line);

// What `braidctl top` shows, and what keys change of it: the jobs in some order, one of them
// chosen; in its place why the chosen one's steps take what they take, or the keys. Pure.
class TopView {
 public:
  explicit TopView(bool has_colours) : has_colours_(has_colours) {}

  // What the last look has found. `note`: what is said below the jobs; may be empty.
  void set_lines(std::vector<JobLine> lines, std::string note);
  // True: the user wants to end.
  bool on_key(Terminal::Key key, char character);
  // At most so many lines, and each at most as many columns wide, without its escapes.
  std::vector<std::string> render(const Terminal::Size& size) const;

  enum class Order : uint8_t { Name, Ranks, StepTime, Network, Trouble };

 private:
  enum class Page : uint8_t { Jobs, Why, Keys };

  void sort();
  void move(int64_t by);
  const JobLine* chosen() const;
  std::vector<std::string> jobs_page(const Terminal::Size& size) const;
  std::vector<std::string> why_page() const;
  std::string styled(const std::string& text, const char* style) const;

  const bool has_colours_;
  std::vector<JobLine> lines_;
  std::string note_;
  std::string chosen_;  // its name
  Page page_ = Page::Jobs;
  Order order_ = Order::Trouble;
  bool is_reversed_ = false;
};

}  // namespace braid
