#include "tools/page/plot.hpp"

#include <spawn.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <sstream>
#include <utility>
#include <vector>

#include "formats/files/atomic_output.hpp"
#include "formats/support/error.hpp"
#include "formats/support/printable.hpp"

namespace guardbit::tools {

namespace {

using experiments::Curve;
using experiments::Figure;
using formats::Error;

constexpr const char* program = "gnuplot";

/// Text of a title or label as gnuplot reads it between single quotes, where nothing else has a
/// meaning: between double ones it would run what stands between backquotes.
std::string quoted(const std::string& text) {
  std::string result = "'";
  for (const char c : text) {
    if (c == '\'') result += '\'';
    result += c == '\n' ? ' ' : c;
  }
  return result + '\'';
}

bool drawable(const Figure& figure, double x, double y) {
  return std::isfinite(x) && std::isfinite(y) && !(figure.log_x && x <= 0) &&
         !(figure.log_y && y <= 0);
}

/// gnuplot widens an axis whose numbers are all the same, but says so on standard error.
void set_range(std::ostream& out, const char* axis, const std::vector<double>& numbers,
               bool logarithmic) {
  const auto [least, most] = std::ranges::minmax(numbers);
  if (least != most) return;
  const double margin = least == 0 ? 1 : std::abs(least) / 100;
  out << "set " << axis << "range [";
  if (logarithmic) {
    out << least / 2 << ':' << most * 2;
  } else {
    out << least - margin << ':' << most + margin;
  }
  out << "]\n";
}

bool has_points(const Figure& figure, const Curve& c) {
  for (std::size_t k = 0; k < c.x.size(); ++k)
    if (drawable(figure, c.x[k], c.y[k])) return true;
  return false;
}

/// Of a figure with something to draw. A curve without anything keeps its colour to itself.
std::string script_of(const Figure& figure, const SvgSize& size) {
  std::ostringstream s;
  s.precision(std::numeric_limits<double>::max_digits10);
  s << "set terminal svg size " << size.width << ',' << size.height
    << " dynamic noenhanced font \"sans-serif,13\" linewidth 1.5 background \"white\"\n"
    << "set title " << quoted(figure.title) << "\nset xlabel " << quoted(figure.x_label)
    << " offset 0,0.9\nset ylabel " << quoted(figure.y_label)
    << "\nset key outside bottom center horizontal\nset grid linecolor \"#dddddd\"\n"
    << "set border 3\nset tics nomirror\nset format \"%g\"\n";
  // Okabe and Ito's colours, which colour-blind readers can tell apart.
  const std::array colours = {"#0072B2", "#D55E00", "#009E73", "#CC79A7",
                              "#E69F00", "#56B4E9", "#000000", "#999933"};
  if (figure.log_x) s << "set logscale x\n";
  if (figure.log_y) s << "set logscale y\n";
  std::vector<double> xs, ys;
  for (std::size_t i = 0; i < figure.curves.size(); ++i) {
    const Curve& c = figure.curves[i];
    if (!has_points(figure, c)) continue;
    s << "$c" << i << " << END_OF_CURVE\n";
    for (std::size_t k = 0; k < c.x.size(); ++k) {
      if (!drawable(figure, c.x[k], c.y[k])) {
        s << '\n';  // no line across what cannot be drawn
        continue;
      }
      s << c.x[k] << ' ' << c.y[k] << '\n';
      xs.push_back(c.x[k]);
      ys.push_back(c.y[k]);
    }
    s << "END_OF_CURVE\n";
  }
  set_range(s, "x", xs, figure.log_x);
  set_range(s, "y", ys, figure.log_y);
  s << "plot ";
  const char* between = "";
  for (std::size_t i = 0; i < figure.curves.size(); ++i) {
    const Curve& c = figure.curves[i];
    if (!has_points(figure, c)) continue;
    // Dots, squares, triangles and diamonds; from the second round of colours on dashes, or other
    // points, so that no two look alike.
    constexpr std::array filled = {7, 5, 9, 13}, hollow = {6, 4, 8, 12}, crosses = {1, 2, 3, 10};
    constexpr std::array points = {hollow, filled, crosses};
    const std::size_t kind = i % filled.size(), round = i / colours.size();
    s << std::exchange(between, ", ") << "$c" << i << " using 1:2 with ";
    if (c.points) {
      s << "points pointtype " << points[round % points.size()][kind] << " pointsize 1.4";
    } else {
      // Marks of long curves would hide each other.
      constexpr std::size_t most_marks = 30;
      s << "linespoints pointtype " << filled[kind] << " pointsize 0.7 dashtype " << round + 1
        << " pointinterval " << 1 + c.x.size() / most_marks;
    }
    s << " linecolor rgb \"" << colours[i % colours.size()] << "\" title " << quoted(c.name);
  }
  s << '\n';
  return s.str();
}

Figure without_empty_curves(const Figure& figure) {
  Figure result = figure;
  std::erase_if(result.curves, [&](const Curve& c) { return !has_points(figure, c); });
  return result;
}

/// A file in memory, which ends with its owner.
class MemoryFile {
 public:
  MemoryFile() : descriptor_(memfd_create("plot", MFD_CLOEXEC)) {
    if (descriptor_ < 0) throw Error(program, "no memory for a plot");
  }
  MemoryFile(const MemoryFile&) = delete;
  MemoryFile& operator=(const MemoryFile&) = delete;
  ~MemoryFile() { close(descriptor_); }

  int descriptor() const { return descriptor_; }
  /// From the beginning, where the next reader begins too.
  void write(std::string_view text) const {
    if (pwrite(descriptor_, text.data(), text.size(), 0) != std::ssize(text))
      throw Error(program, "no memory for a plot");
  }
  std::string content() const {
    std::string text;
    std::array<char, 65536> part{};
    for (;;) {
      const ssize_t size =
          pread(descriptor_, part.data(), part.size(), static_cast<off_t>(text.size()));
      if (size <= 0) return text;
      text.append(part.data(), static_cast<std::size_t>(size));
    }
  }

 private:
  int descriptor_;
};

struct Axis {
  bool logarithmic = false;
  double low = std::numeric_limits<double>::infinity();
  double high = -std::numeric_limits<double>::infinity();

  double place(double x) const { return logarithmic ? std::log10(x) : x; }
  void include(double x) {
    low = std::min(low, place(x));
    high = std::max(high, place(x));
  }
  void widen() {
    if (high > low) return;
    const double margin = low == 0 ? 1 : std::abs(low) / 2;
    low -= margin;
    high += margin;
  }
  /// 0 to steps - 1.
  int step(double x, int steps) const {
    return static_cast<int>(std::lround((place(x) - low) / (high - low) * (steps - 1)));
  }
  std::string label(double share) const {
    const double x = low + share * (high - low);
    std::ostringstream s;
    s.precision(3);
    s << (logarithmic ? std::pow(10, x) : x);
    return s.str();
  }
};

}  // namespace

bool has_gnuplot() {
  const char* const path = std::getenv("PATH");
  std::istringstream folders(path == nullptr ? "" : path);
  for (std::string folder; std::getline(folders, folder, ':');)
    if (access((folder + "/" + program).c_str(), X_OK) == 0) return true;
  return false;
}

void require_gnuplot(const std::string& where) {
  if (!has_gnuplot())
    throw Error(where, "needs gnuplot, which is not installed (Debian, Ubuntu: gnuplot-nox)");
}

std::optional<std::string> svg_of(const Figure& figure, const SvgSize& size) {
  if (without_empty_curves(figure).curves.empty()) return std::nullopt;
  // Script and drawing are files without a name: nothing is left over, however this ends.
  const MemoryFile script, drawing, complaints;
  script.write(script_of(figure, size));
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, script.descriptor(), STDIN_FILENO);
  posix_spawn_file_actions_adddup2(&actions, drawing.descriptor(), STDOUT_FILENO);
  posix_spawn_file_actions_adddup2(&actions, complaints.descriptor(), STDERR_FILENO);
  std::string name = program;
  const std::array<char*, 2> words = {name.data(), nullptr};
  pid_t child = 0;
  int status = 0;
  const bool drawn = posix_spawnp(&child, program, &actions, nullptr, words.data(), environ) == 0 &&
                     waitpid(child, &status, 0) == child && WIFEXITED(status) &&
                     WEXITSTATUS(status) == 0;
  posix_spawn_file_actions_destroy(&actions);
  if (!drawn) throw Error("gnuplot", "did not draw " + formats::in_quotes(figure.title));
  return drawing.content();
}

void write_svg(const std::string& path, const Figure& figure) {
  const std::optional<std::string> drawing = svg_of(figure);
  if (!drawing) return;
  formats::write_file(path, *drawing);
}

std::string text_plot(const Figure& whole, int width, int height) {
  const Figure figure = without_empty_curves(whole);
  if (figure.curves.empty()) return {};
  Axis x{figure.log_x}, y{figure.log_y};
  const auto each = [&](const Curve& c, const auto& visit) {
    for (std::size_t k = 0; k < c.x.size(); ++k)
      if (drawable(figure, c.x[k], c.y[k])) visit(c.x[k], c.y[k]);
  };
  for (const Curve& c : figure.curves) {
    each(c, [&](double a, double b) {
      x.include(a);
      y.include(b);
    });
  }
  x.widen();
  y.widen();
  constexpr int margin = 11;
  const int columns = width - margin;
  std::vector<std::string> rows(static_cast<std::size_t>(height),
                                std::string(static_cast<std::size_t>(columns), ' '));
  const std::string marks = "*o+x#@%&";
  for (std::size_t i = 0; i < figure.curves.size(); ++i) {
    each(figure.curves[i], [&](double a, double b) {
      const auto row = static_cast<std::size_t>(height - 1 - y.step(b, height));
      rows[row][static_cast<std::size_t>(x.step(a, columns))] = marks[i % marks.size()];
    });
  }
  std::ostringstream s;
  s << figure.title << '\n' << figure.y_label << '\n';
  for (int r = 0; r < height; ++r) {
    const bool labelled = r == 0 || r == height - 1 || r == height / 2;
    std::string label =
        labelled ? y.label(1 - static_cast<double>(r) / (height - 1)) : std::string();
    label.insert(
        0, static_cast<std::size_t>(std::max(0, margin - 2 - static_cast<int>(label.size()))), ' ');
    std::string line = label + (labelled ? " +" : " |") + rows[static_cast<std::size_t>(r)];
    line.erase(line.find_last_not_of(' ') + 1);
    s << line << '\n';
  }
  s << std::string(margin - 1, ' ') << '+' << std::string(static_cast<std::size_t>(columns), '-')
    << '\n';
  const std::string left = x.label(0), right = x.label(1);
  const int gap = columns - static_cast<int>(left.size() + right.size());
  s << std::string(margin, ' ') << left
    << std::string(static_cast<std::size_t>(std::max(1, gap)), ' ') << right << '\n'
    << std::string(margin, ' ') << figure.x_label << (figure.log_x ? ", logarithmic" : "") << '\n';
  for (std::size_t i = 0; i < figure.curves.size(); ++i)
    s << std::string(margin, ' ') << marks[i % marks.size()] << "  " << figure.curves[i].name
      << '\n';
  return s.str();
}

}  // namespace guardbit::tools
