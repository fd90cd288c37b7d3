#include "tools/plot/drawing.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>
#include <numbers>

#include "formats/support/printable.hpp"
#include "tools/console/markup.hpp"
#include "tools/console/terminal.hpp"

namespace guardbit::tools {

namespace {

/// A coordinate: two digits are enough for any printer.
std::string at(double x) {
  std::string text = fixed(x, 2);
  text.erase(text.find_last_not_of('0') + 1);
  if (text.back() == '.') text.pop_back();
  return text == "-0" ? "0" : text;
}

std::string attribute(const char* name, const std::string& value) {
  return std::string(" ") + name + "=\"" + value + '"';
}

std::string title_of(const std::string& title) {
  return title.empty() ? "/>" : "><title>" + escaped(title) + "</title></";
}

/// Words of one height: 0, raised (1) or lowered (-1).
struct Part {
  std::string text;
  int level = 0;
};

bool is_word(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }
bool is_digit(char c) { return std::isdigit(static_cast<unsigned char>(c)) != 0; }

std::vector<Part> parts_of(std::string_view words) {
  std::vector<Part> parts(1);
  const auto add = [&](std::string_view text, int level) {
    if (parts.back().level != level) parts.push_back({{}, level});
    parts.back().text += text;
  };
  const auto here = [&](std::size_t i) { return i < words.size() ? words[i] : ' '; };
  constexpr const char* minus = "\u2212";
  for (std::size_t i = 0; i < words.size(); ++i) {
    const bool begins = i == 0 || !is_word(words[i - 1]);
    const std::size_t digits = i + (here(i + 1) == '-' ? 2 : 1);
    if (words[i] == '^' && i > 0 && is_digit(here(digits))) {
      if (digits == i + 2) add(minus, 1);
      for (i = digits; is_digit(here(i)); ++i) add(words.substr(i, 1), 1);
      --i;
    } else if (begins && words.substr(i, 4) == "log2" && !is_word(here(i + 4))) {
      add("log", 0);
      add("2", -1);
      i += 3;
    } else if (begins && std::isupper(static_cast<unsigned char>(words[i])) != 0 &&
               here(i + 1) == '_' && is_word(here(i + 2)) && !is_word(here(i + 3))) {
      add(words.substr(i, 1), 0);
      add(words.substr(i + 2, 1), -1);
      i += 2;
    } else if (words[i] == '-' && begins && (is_word(here(i + 1)) || here(i + 1) == ' ') &&
               (i == 0 || here(i - 1) == ' ' || here(i - 1) == '(')) {
      add(minus, 0);
    } else {
      add(words.substr(i, 1), 0);
    }
  }
  return parts;
}

constexpr const char* fonts = "Helvetica, Arial, 'Liberation Sans', 'DejaVu Sans', sans-serif";

constexpr double small = 0.72;

/// Thousandths of the size, from ' ' on.
constexpr std::array<std::uint16_t, 95> advances = {
    318, 401, 460, 838, 636, 950, 780, 275, 390, 390, 500, 838, 318, 361, 318, 337, 636, 636, 636,
    636, 636, 636, 636, 636, 636, 636, 337, 337, 838, 838, 838, 531, 999, 684, 686, 698, 770, 632,
    575, 775, 752, 295, 295, 656, 557, 863, 748, 787, 603, 787, 695, 635, 611, 732, 684, 989, 685,
    611, 685, 390, 337, 390, 838, 500, 500, 613, 635, 550, 635, 615, 352, 635, 634, 278, 278, 579,
    278, 974, 634, 612, 635, 635, 411, 521, 392, 634, 592, 818, 592, 592, 525, 636, 337, 636, 838};
constexpr double other_advance = 0.838;

double plain_width(std::string_view text) {
  double width = 0;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte >= ' ' && byte < ' ' + advances.size()) {
      width += advances.at(byte - ' ') / 1000.0;
    } else if (byte >= 0xC0) {  // the first byte of a character
      width += other_advance;
    }
  }
  return width;
}

/// Corners of a shape of radius 1.
std::vector<Place> corners(int shape) {
  // As large as the circle looks.
  const auto regular = [](int count, double first) {
    const double size = count == 3 ? 1.45 : 1.2;
    std::vector<Place> list;
    for (int i = 0; i < count; ++i) {
      const double turn = 2 * std::numbers::pi * (first + static_cast<double>(i) / count);
      list.push_back({size * std::sin(turn), -size * std::cos(turn)});
    }
    return list;
  };
  switch (shape) {
    case 1: return {{-0.9, -0.9}, {0.9, -0.9}, {0.9, 0.9}, {-0.9, 0.9}};
    case 2: return regular(3, 0);
    case 3: return {{0, -1.25}, {1.1, 0}, {0, 1.25}, {-1.1, 0}};
    case 4: return regular(3, 0.5);
    case 5: return regular(5, 0);
    case 6: return regular(3, 0.25);
    default: return regular(3, 0.75);
  }
}

}  // namespace

double width_of(std::string_view words, double size) {
  double width = 0;
  for (const Part& part : parts_of(words))
    width += plain_width(part.text) * size * (part.level == 0 ? 1 : small);
  return width;
}

std::vector<std::string> lines_of(std::string_view words, double size, double width) {
  std::vector<std::string> lines;
  while (!words.empty()) {
    std::size_t end = words.find(' ');
    for (std::size_t next = end; next != std::string_view::npos; end = next) {
      next = words.find(' ', next + 1);
      if (width_of(words.substr(0, next), size) > width) break;
    }
    lines.emplace_back(words.substr(0, end));
    words = end == std::string_view::npos ? "" : words.substr(end + 1);
  }
  return lines;
}

std::string shortened(std::string_view words, double size, double width) {
  if (width_of(words, size) <= width) return std::string(words);
  // Names of one kind begin alike and differ in their ends, so both ends stay.
  const auto is_inside = [](char c) { return (static_cast<unsigned char>(c) & 0xC0U) == 0x80; };
  std::string_view head = words.substr(0, words.size() / 2), tail = words.substr(head.size());
  const auto text = [&] { return std::string(head) + "…" + std::string(tail); };
  while (!tail.empty() && is_inside(tail.front())) tail.remove_prefix(1);
  while (!(head.empty() && tail.empty()) && width_of(text(), size) > width) {
    if (head.size() >= tail.size()) {
      while (is_inside(head.back())) head.remove_suffix(1);
      head.remove_suffix(1);
    } else {
      tail.remove_prefix(1);
      while (!tail.empty() && is_inside(tail.front())) tail.remove_prefix(1);
    }
  }
  return text();
}

Drawing::Drawing(double width, double height, const std::string& title)
    : width_(width), height_(height), title_(title) {}

void Drawing::line(Place from, Place to, const Stroke& stroke) { path({from, to}, stroke); }

void Drawing::path(const std::vector<Place>& places, const Stroke& stroke) {
  std::string points;
  for (const Place& p : places)
    points.append(points.empty() ? "" : " ").append(at(p.x) + ',' + at(p.y));
  body_ += "<polyline fill=\"none\"" + attribute("stroke", stroke.colour) +
           (stroke.width == 1 ? "" : attribute("stroke-width", at(stroke.width))) +
           (stroke.dashes.empty() ? "" : attribute("stroke-dasharray", stroke.dashes)) +
           attribute("points", points) + "/>";
}

void Drawing::box(const Box& box, const std::string& fill, const std::string& title,
                  double opacity) {
  body_ += "<rect" + attribute("x", at(box.left)) + attribute("y", at(box.top)) +
           attribute("width", at(std::max(0.0, box.width()))) +
           attribute("height", at(std::max(0.0, box.height()))) + attribute("fill", fill) +
           (opacity < 1 ? attribute("fill-opacity", at(opacity)) : "") + title_of(title) +
           (title.empty() ? "" : "rect>");
}

void Drawing::marker(int shape, Place place, double radius, const std::string& colour, bool is_open,
                     const std::string& title) {
  const std::string ink = is_open ? attribute("fill", "none") + attribute("stroke", colour) +
                                        attribute("stroke-width", "1.5")
                                  : attribute("fill", colour);
  if (shape == 0) {
    body_ += "<circle" + attribute("cx", at(place.x)) + attribute("cy", at(place.y)) +
             attribute("r", at(radius)) + ink + title_of(title) + (title.empty() ? "" : "circle>");
    return;
  }
  std::string points;
  for (const Place& p : corners(shape))
    points.append(points.empty() ? "" : " ")
        .append(at(place.x + radius * p.x) + ',' + at(place.y + radius * p.y));
  body_ += "<polygon" + attribute("points", points) + ink + title_of(title) +
           (title.empty() ? "" : "polygon>");
}

void Drawing::text(Place place, std::string_view words, const Words& style) {
  const std::string shown = formats::printable(std::string(words));
  const double length = width_of(shown, style.size);
  const double before = style.anchor == Anchor::start    ? 0
                        : style.anchor == Anchor::middle ? length / 2
                                                         : length;
  const double above = 0.76 * style.size, below = 0.22 * style.size;
  words_.push_back(
      style.upright
          ? Box{place.x - above, place.y + before - length, place.x + below, place.y + before}
          : Box{place.x - before, place.y - above, place.x - before + length, place.y + below});
  body_ += "<text" + attribute("x", at(place.x)) + attribute("y", at(place.y)) +
           attribute("font-size", at(style.size)) + attribute("fill", style.fill);
  if (style.anchor != Anchor::start)
    body_ += attribute("text-anchor", style.anchor == Anchor::middle ? "middle" : "end");
  if (style.upright)
    body_ += attribute("transform", "rotate(-90 " + at(place.x) + ' ' + at(place.y) + ')');
  const std::vector<Part> parts = parts_of(shown);
  // Without it blanks at the ends of parts go.
  body_ += parts.size() > 1 ? " xml:space=\"preserve\">" : ">";
  int level = 0;
  for (const Part& part : parts) {
    if (part.text.empty()) continue;
    if (part.level == level && level == 0) {
      body_ += escaped(part.text);
      continue;
    }
    // Up and down relative to where the last part stood.
    const auto height_at = [&](int l) {
      return l == 0 ? 0.0 : (l > 0 ? -0.36 : 0.16) * style.size;
    };
    body_ += "<tspan" + attribute("dy", at(height_at(part.level) - height_at(level))) +
             (part.level == 0 ? "" : attribute("font-size", at(small * style.size))) + '>' +
             escaped(part.text) + "</tspan>";
    level = part.level;
  }
  body_ += "</text>";
}

void Drawing::begin_cut(const Box& box) {
  body_ += "<svg" + attribute("x", at(box.left)) + attribute("y", at(box.top)) +
           attribute("width", at(box.width())) + attribute("height", at(box.height())) +
           attribute("viewBox", at(box.left) + ' ' + at(box.top) + ' ' + at(box.width()) + ' ' +
                                    at(box.height())) +
           attribute("overflow", "hidden") + '>';
}

std::string Drawing::inline_svg() const {
  return "<svg" + attribute("viewBox", "0 0 " + at(width_) + ' ' + at(height_)) + " role=\"img\"" +
         attribute("aria-label", escaped(title_)) + attribute("font-family", fonts) +
         "><rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>" + body_ + "</svg>";
}

std::string Drawing::svg() const {
  return "<svg xmlns=\"http://www.w3.org/2000/svg\"" + attribute("width", at(width_)) +
         attribute("height", at(height_)) + inline_svg().substr(4) + '\n';
}

}  // namespace guardbit::tools
