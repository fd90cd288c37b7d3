#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <iosfwd>
#include <string>
#include <string_view>
#include <vector>

// Text on a terminal: colours, widths, wrapped lines, tables, progress.
namespace guardbit::tools {

enum class Colour : std::uint8_t { plain, bold, dim, red, green, yellow, blue, magenta, cyan };

/// Standard output is a terminal that takes colours, and NO_COLOR is unset or empty (no-color.org).
bool colour_wanted();
/// From now on it is not wanted: text does not go to a terminal.
void never_colour();

/// The text in that colour, or as it is where colour is not wanted.
std::string paint(std::string_view text, Colour colour);

/// printf of a number; a NaN has no sign.
std::string number(double value, const char* form = "%.4g");
/// With so many digits after the point.
std::string fixed(double value, int digits);

/// Columns that UTF-8 text takes on a terminal; colour sequences take none.
std::size_t display_width(std::string_view text);

/// The text with control characters escaped, but for what paint() writes.
std::string without_controls(std::string_view text);

/// Lines of ASCII text of at most `width` columns, broken at spaces, or inside words that are
/// longer.
std::vector<std::string> wrapped(std::string_view text, std::size_t width);

/// Rows of cells in aligned columns, two spaces apart, without trailing blanks.
class Table {
 public:
  /// One letter per column: 'l' or 'r' for flush left or right. The first row added is the head
  /// when `has_head`.
  explicit Table(std::string alignment, bool has_head = true);

  /// Control characters of the cells are escaped.
  void add(std::vector<std::string> cells);
  void print(std::ostream& out) const;
  /// The same as a Markdown table; it needs a head.
  void print_markdown(std::ostream& out) const;

  const std::string& alignment() const { return alignment_; }
  /// The head, if any, and the rows.
  const std::vector<std::vector<std::string>>& rows() const { return rows_; }

 private:
  std::string alignment_;
  bool has_head_;
  std::vector<std::vector<std::string>> rows_;
};

/// "guardbit: TEXT" on standard error, after what standard output has; control characters are
/// escaped and a long text is cut.
void say(const std::string& text);

/// One line of text on standard error, rewritten in place and removed in the end; nothing where
/// that is no terminal.
class StatusLine {
 public:
  /// A text that comes sooner than that after the last one is not shown.
  explicit StatusLine(std::chrono::milliseconds interval = std::chrono::milliseconds(100));
  StatusLine(const StatusLine&) = delete;
  StatusLine& operator=(const StatusLine&) = delete;
  ~StatusLine();

  void show(const std::string& text);

 private:
  std::chrono::milliseconds interval_;
  bool visible_, shown_ = false;
  std::chrono::steady_clock::time_point next_;
};

/// "LABEL  42%" as a status line.
class ProgressLine {
 public:
  ProgressLine(std::string label, std::size_t total);

  void update(std::size_t done);

 private:
  StatusLine line_;
  std::string label_;
  std::size_t total_;
  std::size_t shown_percent_ = 101;
};

}  // namespace guardbit::tools
