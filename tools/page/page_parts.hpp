#pragma once

#include <span>
#include <string>
#include <vector>

#include "experiments/harness/experiment.hpp"

namespace guardbit::tools {

/// A table that scrolls by itself where it is wider than the page, by keys too.
class HtmlTable {
 public:
  /// One letter per column: 'l' text, 'w' longer text, 'n' number.
  HtmlTable(std::string columns, const std::string& caption, const std::vector<std::string>& head);

  /// Cells are HTML. The first one names the row.
  void add(std::span<const std::string> cells);
  std::string finish() const;

 private:
  const char* side(std::size_t i) const;

  std::string columns_, html_;
};

/// The figure as two drawings, for wide and narrow screens, with its words for who sees none and
/// its numbers; in characters where gnuplot is not installed.
std::string drawing_of(const experiments::Figure& figure);

/// A verdict or "complete" or "incomplete", with a sign, so that colour is not all that tells them
/// apart.
std::string badge(const std::string& verdict);

/// What report pages add to page_head's style.
extern const char* const report_style;

}  // namespace guardbit::tools
