// SPDX-License-Identifier: Apache-2.0
#include "braidctl/top_view.h"

#include <algorithm>
#include <sstream>
#include <utility>

#include "base/printable.h"

namespace braid {
namespace {

constexpr const char* kReverse = "\x1b[7m";
constexpr const char* kBold = "\x1b[1m";
constexpr const char* kRed = "\x1b[1;31m";
constexpr const char* kYellow = "\x1b[33m";
constexpr const char* kPlain = "\x1b[0m";
constexpr int64_t kPageRows = 10;

const std::vector<std::string>& keys_page() {
  static const std::vector<std::string> lines = {
      "keys",
      "",
      "  up, down, k, j     choose a job (page up and down: by ten)",
      "  enter              why its steps take what they take; back",
      "  s                  another order: trouble, name, ranks, step time, network",
      "  r                  the order reversed",
      "  ?, h               these keys; back",
      "  q, escape, ctrl-c  back, or the end",
      "",
      "  !!  something is broken: a node that does not answer, a stalled job, a rail, a GPU",
      "  !   something could be better"};
  return lines;
}

const char* name_of(TopView::Order order) {
  switch (order) {
    case TopView::Order::Name:
      return "name";
    case TopView::Order::Ranks:
      return "ranks";
    case TopView::Order::StepTime:
      return "step time";
    case TopView::Order::Network:
      return "network";
    case TopView::Order::Trouble:
      return "trouble";
  }
  return "";
}

const char* mark_of(Trouble trouble) {
  return trouble == Trouble::Fault ? "!! " : trouble == Trouble::Notice ? "!  " : "   ";
}

// As many characters of UTF-8 as fit.
std::string fitted(const std::string& line, size_t columns) {
  size_t characters = 0;
  for (size_t i = 0; i < line.size(); ++i) {
    const bool begins = (static_cast<unsigned char>(line[i]) & 0xc0) != 0x80;
    if (begins && ++characters > columns) return line.substr(0, i);
  }
  return line;
}

// Lines of whole words where they fit.
std::vector<std::string> wrapped(const std::string& text, size_t columns) {
  std::vector<std::string> lines;
  std::istringstream paragraphs(text);
  for (std::string paragraph; std::getline(paragraphs, paragraph);) {
    while (paragraph.size() > columns) {
      const size_t blank = paragraph.rfind(' ', columns);
      const size_t end = blank == std::string::npos || blank == 0 ? columns : blank;
      lines.push_back(paragraph.substr(0, end));
      paragraph.erase(0, end == columns ? end : end + 1);
    }
    lines.push_back(paragraph);
  }
  return lines;
}

double step_seconds(const JobLine& line) {
  return line.explanation ? line.explanation->step_seconds : 0;
}
double network_share(const JobLine& line) {
  if (!line.explanation || line.explanation->step_seconds <= 0) return 0;
  return line.explanation->exposed_seconds / line.explanation->step_seconds;
}

}  // namespace

Trouble trouble_of(const JobLine& line) {
  if (!line.explanation) return Trouble::None;
  if (!line.explanation->missing.empty()) return Trouble::Fault;
  if (line.explanation->findings.empty()) return Trouble::None;
  switch (line.explanation->findings.front().cause) {
    case Cause::Stalled:
    case Cause::NotFinite:
    case Cause::GpuLost:
    case Cause::GpuXid:
    case Cause::GpuEcc:
    case Cause::GpuHeat:
    case Cause::GpuPower:
    case Cause::GpuSlowdown:
    case Cause::GpuPcie:
    case Cause::LostFlow:
    case Cause::RailDown:
      return Trouble::Fault;
    case Cause::GpuShared:
    case Cause::LateRank:
    case Cause::Placement:
    case Cause::SlowFlow:
    case Cause::SlowRail:
    case Cause::CompetingJobs:
    case Cause::StarvedDaemon:
    case Cause::Plan:
    case Cause::SmallMessages:
      return Trouble::Notice;
    case Cause::Network:
    case Cause::BeforeBackward:
    case Cause::Compute:
      return Trouble::None;
  }
  return Trouble::None;
}

void TopView::set_lines(std::vector<JobLine> lines, std::string note) {
  lines_ = std::move(lines);
  note_ = std::move(note);
  sort();
  if (chosen() == nullptr) {
    chosen_ = lines_.empty() ? "" : lines_.front().job;
    if (page_ == Page::Why) page_ = Page::Jobs;  // it is over
  }
}

void TopView::sort() {
  const auto comes_before = [this](const JobLine& a, const JobLine& b) {
    switch (order_) {
      case Order::Name:
        return a.job < b.job;
      case Order::Ranks:
        return a.ranks > b.ranks;
      case Order::StepTime:
        return step_seconds(a) > step_seconds(b);
      case Order::Network:
        return network_share(a) > network_share(b);
      case Order::Trouble:
        return trouble_of(a) > trouble_of(b);
    }
    return false;
  };
  std::ranges::sort(lines_, {}, &JobLine::job);
  std::ranges::stable_sort(lines_, comes_before);
  if (is_reversed_) std::ranges::reverse(lines_);
}

const JobLine* TopView::chosen() const {
  const auto found = std::ranges::find(lines_, chosen_, &JobLine::job);
  return found == lines_.end() ? nullptr : &*found;
}

void TopView::move(int64_t by) {
  if (lines_.empty()) return;
  const auto found = std::ranges::find(lines_, chosen_, &JobLine::job);
  const auto at = static_cast<int64_t>(found - lines_.begin());
  const auto last = static_cast<int64_t>(lines_.size()) - 1;
  chosen_ = lines_[static_cast<size_t>(std::clamp<int64_t>(at + by, 0, last))].job;
}

bool TopView::on_key(Terminal::Key key, char character) {
  using Key = Terminal::Key;
  const bool is_back = key == Key::Escape || (key == Key::Character && character == 'q');
  if (is_back && page_ == Page::Jobs) return true;
  if (is_back) {
    page_ = Page::Jobs;
  } else if (key == Key::Up || character == 'k') {
    move(-1);
  } else if (key == Key::Down || character == 'j') {
    move(1);
  } else if (key == Key::PageUp) {
    move(-kPageRows);
  } else if (key == Key::PageDown) {
    move(kPageRows);
  } else if (key == Key::Enter) {
    page_ = page_ == Page::Jobs && chosen() != nullptr ? Page::Why : Page::Jobs;
  } else if (character == '?' || character == 'h') {
    page_ = page_ == Page::Keys ? Page::Jobs : Page::Keys;
  } else if (character == 's') {
    order_ = order_ == Order::Trouble ? Order::Name
                                      : static_cast<Order>(static_cast<uint8_t>(order_) + 1);
    sort();
  } else if (character == 'r') {
    is_reversed_ = !is_reversed_;
    sort();
  }
  return false;
}

std::string TopView::styled(const std::string& text, const char* style) const {
  const bool is_colour = style == kRed || style == kYellow;
  return is_colour && !has_colours_ ? text : style + text + kPlain;
}

std::vector<std::string> TopView::jobs_page(const Terminal::Size& size) const {
  std::vector<std::string> page = {fmt::format(
      "braidctl top: {} {}, by {}{}   enter why, s order, ? keys, q end", lines_.size(),
      lines_.size() == 1 ? "job" : "jobs", name_of(order_), is_reversed_ ? " reversed" : "")};
  std::istringstream table(jobs_table(lines_));
  std::vector<std::string> rows;
  for (std::string row; std::getline(table, row);) rows.push_back(row);
  if (lines_.empty()) {
    page.push_back(rows.front());
  } else {
    page.push_back(styled(fitted("   " + rows.front(), size.columns), kBold));
    // The part of the jobs that fits and has the chosen one.
    const size_t room = size.rows > 4 ? size.rows - 4 : 1;
    const auto at = std::ranges::find(lines_, chosen_, &JobLine::job);
    const auto row_of_chosen = static_cast<size_t>(at - lines_.begin());
    const size_t first = row_of_chosen < room ? 0 : row_of_chosen - room + 1;
    for (size_t i = first; i < lines_.size() && i < first + room; ++i) {
      const Trouble trouble = trouble_of(lines_[i]);
      const std::string row = fitted(mark_of(trouble) + rows[i + 1], size.columns);
      page.push_back(i == row_of_chosen           ? styled(row, kReverse)
                     : trouble == Trouble::Fault  ? styled(row, kRed)
                     : trouble == Trouble::Notice ? styled(row, kYellow)
                                                  : row);
    }
  }
  if (!note_.empty()) page.push_back(note_);
  return page;
}

std::vector<std::string> TopView::why_page() const {
  const JobLine* line = chosen();
  if (line == nullptr) return {};
  std::vector<std::string> page = {
      fmt::format("job '{}': why   enter, q back", printable(line->job)), ""};
  const std::string text = line->explanation ? explanation_text(*line->explanation)
                                             : line->explanation.status().message();
  std::istringstream sentences(printable_lines(text));
  for (std::string sentence; std::getline(sentences, sentence);) page.push_back(sentence);
  return page;
}

std::vector<std::string> TopView::render(const Terminal::Size& size) const {
  std::vector<std::string> page;
  if (page_ == Page::Jobs) {
    page = jobs_page(size);
    page.front() = fitted(page.front(), size.columns);
    if (!note_.empty()) page.back() = fitted(page.back(), size.columns);
  } else {
    for (const std::string& line : page_ == Page::Keys ? keys_page() : why_page()) {
      if (line.empty()) page.emplace_back();
      for (std::string& part : wrapped(line, size.columns)) page.push_back(std::move(part));
    }
  }
  if (page.size() > size.rows) page.resize(size.rows);
  return page;
}

}  // namespace braid
