#include "tools/console/terminal.hpp"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <iomanip>
#include <iostream>
#include <sstream>
#include <utility>

#include "formats/support/printable.hpp"
#include "tools/console/sign_of_life.hpp"

namespace guardbit::tools {

namespace {

std::string_view environment(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? std::string_view{} : std::string_view(value);
}

std::string_view sequence(Colour colour) {
  switch (colour) {
    case Colour::plain: break;
    case Colour::bold: return "\033[1m";
    case Colour::dim: return "\033[2m";
    case Colour::red: return "\033[31m";
    case Colour::green: return "\033[32m";
    case Colour::yellow: return "\033[33m";
    case Colour::blue: return "\033[34m";
    case Colour::magenta: return "\033[35m";
    case Colour::cyan: return "\033[36m";
  }
  return {};
}

}  // namespace

namespace {
bool is_colour_refused = false;
}

void never_colour() { is_colour_refused = true; }

bool colour_wanted() {
  static const bool wanted = isatty(STDOUT_FILENO) != 0 && environment("NO_COLOR").empty() &&
                             environment("TERM") != "dumb";
  return wanted && !is_colour_refused;
}

std::string paint(std::string_view text, Colour colour) {
  if (!colour_wanted() || colour == Colour::plain || text.empty()) return std::string(text);
  return std::string(sequence(colour)) + std::string(text) + "\033[0m";
}

std::string number(double value, const char* form) {
  if (std::isnan(value)) return "nan";  // of either sign
  std::array<char, 48> text{};
  std::snprintf(text.data(), text.size(), form, value);
  return text.data();
}

std::string fixed(double value, int digits) {
  std::ostringstream text;
  text << std::fixed << std::setprecision(digits) << value;
  return text.str();
}

std::size_t display_width(std::string_view text) {
  std::size_t width = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\033') {
      i = std::min(text.find('m', i), text.size());
    } else if ((static_cast<unsigned char>(text[i]) & 0xC0U) != 0x80U) {  // not a continuation byte
      ++width;
    }
  }
  return width;
}

std::vector<std::string> wrapped(std::string_view text, std::size_t width) {
  std::vector<std::string> lines;
  while (display_width(text) > width) {
    std::size_t end = text.rfind(' ', width);
    const bool at_space = end != std::string_view::npos && end > 0;
    if (!at_space) end = width;
    lines.emplace_back(text.substr(0, end));
    text.remove_prefix(at_space ? end + 1 : end);
  }
  lines.emplace_back(text);
  return lines;
}

std::string without_controls(std::string_view text) {
  std::string result;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t escape = std::min(text.find('\033', begin), text.size());
    result += formats::printable(text.substr(begin, escape - begin), 4 * text.size() + 4);
    begin = escape;
    if (begin == text.size()) break;
    const auto digits = text.substr(std::min(begin + 2, text.size()));
    const std::size_t end = digits.find_first_not_of("0123456789");
    const bool is_paint = colour_wanted() && text.substr(begin, 2) == "\033[" &&
                          end != std::string_view::npos && end <= 2 && digits[end] == 'm';
    const std::size_t length = is_paint ? end + 3 : 1;
    result += is_paint ? std::string(text.substr(begin, length)) : "\\x1b";
    begin += length;
  }
  return result;
}

Table::Table(std::string alignment, bool has_head)
    : alignment_(std::move(alignment)), has_head_(has_head) {}

void Table::add(std::vector<std::string> cells) {
  cells.resize(alignment_.size());
  for (std::string& cell : cells) cell = without_controls(cell);
  rows_.push_back(std::move(cells));
}

void Table::print(std::ostream& out) const {
  std::vector<std::size_t> widths(alignment_.size());
  for (const auto& row : rows_) {
    for (std::size_t i = 0; i < row.size(); ++i)
      widths[i] = std::max(widths[i], display_width(row[i]));
  }
  for (std::size_t r = 0; r < rows_.size(); ++r) {
    std::string line;
    std::string gap;
    for (std::size_t i = 0; i < widths.size(); ++i) {
      const std::string& cell = rows_[r][i];
      const std::string padding(widths[i] - display_width(cell), ' ');
      if (alignment_[i] == 'r') gap += padding;
      if (!cell.empty()) {
        line += gap + (r == 0 && has_head_ ? paint(cell, Colour::dim) : cell);
        gap.clear();  // blanks of empty cells wait for the next one that holds something
      }
      if (alignment_[i] != 'r') gap += padding;
      gap += "  ";
    }
    out << line << '\n';
  }
}

void Table::print_markdown(std::ostream& out) const {
  for (std::size_t r = 0; r < rows_.size(); ++r) {
    for (const std::string& cell : rows_[r]) {
      out << "| ";
      for (const char c : cell) out << (c == '|' ? "\\|" : std::string(1, c));
      out << ' ';
    }
    out << "|\n";
    if (r != 0 || !has_head_) continue;
    for (const char side : alignment_) out << (side == 'r' ? "|---:" : "|---");
    out << "|\n";
  }
}

void say(const std::string& text) {
  std::cout.flush();
  std::cerr << "guardbit: " << formats::printable(text, 1000) << '\n';
}

StatusLine::StatusLine(std::chrono::milliseconds interval)
    : interval_(interval), visible_(isatty(STDERR_FILENO) != 0 && environment("TERM") != "dumb") {}

StatusLine::~StatusLine() {
  set_present_work({}, false);
  if (shown_) std::cerr << "\r\033[K" << std::flush;
}

void StatusLine::show(const std::string& text) {
  const auto now = std::chrono::steady_clock::now();
  if (now < next_) return;
  next_ = now + interval_;
  set_present_work(text, visible_);
  if (!visible_) return;
  shown_ = true;
  std::cerr << '\r' << text << "\033[K" << std::flush;
}

ProgressLine::ProgressLine(std::string label, std::size_t total)
    : line_(std::chrono::milliseconds(0)), label_(std::move(label)), total_(total) {}

void ProgressLine::update(std::size_t done) {
  if (total_ == 0) return;
  const std::size_t percent =
      std::min<std::size_t>(100, done / std::max<std::size_t>(1, total_ / 100));
  if (percent == shown_percent_) return;
  shown_percent_ = percent;
  line_.show(label_ + "  " + std::to_string(percent) + "%");
}

}  // namespace guardbit::tools
