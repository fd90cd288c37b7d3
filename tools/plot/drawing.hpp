#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

// A picture as SVG: lines, shapes and words at places, in pixels of 1/96 inch from the top left.
namespace guardbit::tools {

struct Place {
  double x = 0, y = 0;
};

struct Box {
  double left = 0, top = 0, right = 0, bottom = 0;

  double width() const { return right - left; }
  double height() const { return bottom - top; }
  bool overlaps(const Box& other) const {
    return left < other.right && other.left < right && top < other.bottom && other.top < bottom;
  }
};

enum class Anchor : std::uint8_t { start, middle, end };

namespace ink {
constexpr const char *text = "#222222", *quiet = "#555555", *line = "#333333", *grid = "#e3e3e3";
}  // namespace ink

/// Sizes of letters in charts and maps.
constexpr double title_size = 14, label_size = 12, tick_size = 11;

struct Words {
  double size = label_size;
  Anchor anchor = Anchor::start;
  const char* fill = ink::text;
  /// read from below
  bool upright = false;
};

struct Stroke {
  std::string colour = ink::line;
  double width = 1;
  /// lengths of dashes and gaps; empty: a line
  std::string dashes = {};
};

constexpr int marker_shapes = 8;

/// Words as they are typeset: 2^-12, log2 and N_C get a raised or lowered part, "x - y" and numbers
/// below zero a minus sign. The width is that in DejaVu Sans, the widest of the fonts that a viewer
/// may choose.
double width_of(std::string_view words, double size);
/// At most `width` wide, broken at spaces; a longer word stands alone.
std::vector<std::string> lines_of(std::string_view words, double size, double width);
/// Its beginning and "…" where it is wider.
std::string shortened(std::string_view words, double size, double width);

class Drawing {
 public:
  /// `title`: what a reader is told who sees no pictures.
  Drawing(double width, double height, const std::string& title);

  void line(Place from, Place to, const Stroke& stroke = {});
  void path(const std::vector<Place>& places, const Stroke& stroke);
  void box(const Box& box, const std::string& fill, const std::string& title = {},
           double opacity = 1);
  /// A circle, square, triangle …: filled, or its outline.
  void marker(int shape, Place at, double radius, const std::string& colour, bool is_open,
              const std::string& title = {});
  /// `at`: on the line on which the words stand.
  void text(Place at, std::string_view words, const Words& style = {});

  /// What is drawn in between is cut off at the box.
  void begin_cut(const Box& box);
  void end_cut() { body_ += "</svg>"; }

  /// Boxes in between touch without a seam.
  void begin_tiles() { body_ += "<g shape-rendering=\"crispEdges\">"; }
  void end_tiles() { body_ += "</g>"; }

  double width() const { return width_; }
  double height() const { return height_; }
  /// What the words take, in their order.
  const std::vector<Box>& words() const { return words_; }
  std::string svg() const;
  /// As a part of a page.
  std::string inline_svg() const;

 private:
  double width_, height_;
  std::string title_, body_;
  std::vector<Box> words_;
};

}  // namespace guardbit::tools
