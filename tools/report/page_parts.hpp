#pragma once

#include <span>
#include <string>
#include <vector>

#include "experiments/harness/experiment.hpp"
#include "tools/console/terminal.hpp"
#include "tools/plot/chart.hpp"

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

/// The table, which has a head, as HTML.
std::string html_table(const std::string& caption, const Table& table);

constexpr double wide_picture = 760, narrow_picture = 400;

/// Two drawings of the same, for wide and for narrow screens.
std::string drawing_of(const Drawing& wide, const Drawing& narrow);
std::string drawing_of(const experiments::Figure& figure, const std::vector<Strip>& strips = {});
/// With its words for who sees none, and its numbers; empty where there is nothing to draw.
std::string drawing_with_numbers(const experiments::Figure& figure);

/// A verdict or "complete" or "incomplete", with a sign, so that colour is not all that tells them
/// apart.
std::string badge(const std::string& verdict);

/// What report pages add to page_head's style.
extern const char* const report_style;

}  // namespace guardbit::tools
