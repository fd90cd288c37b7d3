// Pictures: nothing overlaps, axes fit their numbers, the same thing looks the same everywhere, the
// extension decides.

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>
#include <random>
#include <set>
#include <string>

#include "formats/support/error.hpp"
#include "tests/catch.hpp"
#include "tests/places.hpp"
#include "tests/tools/command.hpp"
#include "tests/tools/shell.hpp"
#include "tools/plot/axis.hpp"
#include "tools/plot/chart.hpp"
#include "tools/plot/heat_map.hpp"
#include "tools/plot/panels.hpp"
#include "tools/plot/sum_tree_picture.hpp"
#include "tools/plot/text_plot.hpp"

namespace guardbit::tests {
namespace {

using experiments::Curve;
using experiments::Figure;
using experiments::Look;
using tools::Axis;
using tools::Box;
using tools::Drawing;

/// The first two words that overlap or leave the picture; empty where none do.
std::string crowded(const Drawing& drawing) {
  const std::vector<Box>& words = drawing.words();
  const Box all = {0, 0, drawing.width(), drawing.height()};
  for (std::size_t i = 0; i < words.size(); ++i) {
    const Box& w = words[i];
    if (w.left < all.left || w.right > all.right || w.top < all.top || w.bottom > all.bottom)
      return "words " + std::to_string(i) + " leave the picture";
    for (std::size_t j = i + 1; j < words.size(); ++j)
      if (w.overlaps(words[j]))
        return "words " + std::to_string(i) + " and " + std::to_string(j) + " overlap";
  }
  return {};
}

/// `names` curves over decades of numbers.
Figure figure_of(const std::vector<std::string>& names, bool log_x, bool log_y, double low,
                 double high) {
  Figure figure{"E99: what a title says that is rather long, of several formats and machines",
                "K (products in each sum)", "largest |error| / (|A||B|), log2 of it", log_x, log_y};
  for (const std::string& name : names) {
    Curve curve{name};
    for (int i = 0; i <= 10; ++i) {
      const double share = i / 10.0;
      curve.add(log_x ? 64 * std::exp2(i) : 100 * i,
                log_y ? low * std::pow(high / low, share) : low + (high - low) * share);
    }
    figure.curves.push_back(curve);
  }
  return figure;
}

std::vector<std::string> names_of(std::size_t count, const std::string& first) {
  std::vector<std::string> names;
  for (std::size_t i = 0; i < count; ++i)
    names.push_back(first + std::to_string(i % 5) + ", distribution " + std::to_string(i / 5));
  return names;
}

TEST_CASE("no words of a picture overlap or leave it, whatever its size, axes and series",
          "[long]") {
  for (const double width : {260.0, 336.0, 640.0, 1200.0}) {
    for (const std::size_t series : {1U, 2U, 7U, 15U, 25U}) {
      for (const auto& [low, high] :
           {std::pair{0.66, 0.95}, std::pair{1e-7, 3.0}, std::pair{1e-3, 1e3}, std::pair{1e5, 5e8},
            std::pair{0.1, 0.1000001}}) {
        for (const int logs : {0, 1, 2, 3}) {
          const Figure figure =
              figure_of(names_of(series, "format"), logs % 2 != 0, logs / 2 != 0, low, high);
          CAPTURE(width, series, low, high, logs);
          CHECK(crowded(tools::chart(figure, {.width = width})) == "");
        }
      }
    }
  }
  Figure rows{"rows", "what", "errors of it (%)"};
  for (int i = 0; i < 9; ++i)
    rows.categories.push_back("a recipe with quite a long name, so long that it is cut " +
                              std::to_string(i));
  for (const char* const name : {"computed", "reported", "bound"}) {
    Curve curve{name, {}, {}, Look::points};
    for (int i = 0; i < 9; ++i) curve.add(i, 1 + 0.001 * i);
    rows.curves.push_back(curve);
  }
  for (const double width : {336.0, 640.0})
    CHECK(crowded(tools::chart(rows, {.width = width})).empty());
  Figure bars{"bars", "floor(log2 |x|)", "share (%)"};
  Curve curve{"", {}, {}, Look::bars};
  for (int i = -60; i < 4; ++i) curve.add(i, 60 + i);
  bars.curves.push_back(curve);
  const Drawing histogram =
      tools::chart(bars, {.width = 400}, {{"fp16", -24, -14, 16}, {"e4m3_a_name", -9, -6, 9}});
  CHECK(crowded(histogram).empty());
  Drawing map(336, 360, "map");
  draw_map(map, {0, 0, 336, 360},
           {.title = "errors",
            .x_label = "column",
            .y_label = "row",
            .unit = "ulp",
            .rows = 2,
            .columns = 2,
            .tile_rows = 64,
            .tile_columns = 64,
            .last_row = 128,
            .last_column = 128,
            .numbers = {0, 3, INFINITY, NAN}});
  CHECK(crowded(map).empty());
}

TEST_CASE("words that are drawn over each other are found") {
  Drawing drawing(100, 40, "two");
  drawing.text({10, 20}, "one");
  drawing.text({20, 22}, "two");
  CHECK(crowded(drawing) == "words 0 and 1 overlap");
  Drawing narrow(10, 40, "one");
  narrow.text({5, 20}, "one");
  CHECK(crowded(narrow) == "words 0 leave the picture");
}

TEST_CASE("an axis fits its numbers, and its ticks stand apart") {
  std::mt19937_64 random(1);
  for (int round = 0; round < 3000; ++round) {
    const bool is_logarithmic = round % 2 == 0;
    std::vector<double> numbers(2 + random() % 20);
    const double unit = std::pow(10, static_cast<double>(random() % 24) - 12);
    const double spread = static_cast<double>(random() % 12);
    for (double& x : numbers) {
      const double share = static_cast<double>(random() % 1000) / 1000;
      x = is_logarithmic ? unit * std::pow(10, spread * share)
                         : unit * (share - (round % 4 == 1 ? 0.5 : -0.4));
    }
    const auto [least, most] = std::ranges::minmax(numbers);
    const Axis axis(numbers, is_logarithmic);
    CAPTURE(round, least, most, axis.low(), axis.high());
    REQUIRE((axis.shows(least) && axis.shows(most)));
    // A range of its own makes no more of the axis than zero or a power that is near.
    if (most > least) CHECK(axis.share(most) - axis.share(least) > 0.8);
    const auto ticks = axis.ticks(300, true, 11);
    CHECK(!ticks.empty());
    std::set<std::string> labels;
    for (std::size_t i = 0; i < ticks.size(); ++i) {
      CHECK(axis.share(ticks[i].at) > -1e-6);
      CHECK(axis.share(ticks[i].at) < 1 + 1e-6);
      labels.insert(ticks[i].label);
    }
    CHECK(labels.size() == ticks.size());
  }
}

std::vector<std::string> labels_of(const Axis& axis, double length = 400) {
  std::vector<std::string> labels;
  for (const tools::Tick& tick : axis.ticks(length, true, 11)) labels.push_back(tick.label);
  return labels;
}

TEST_CASE("an axis is labelled as people write it") {
  using Labels = std::vector<std::string>;
  CHECK(labels_of(Axis({512, 1024, 4096}, true)) == Labels{"512", "1024", "2048", "4096"});
  CHECK(labels_of(Axis({1024, 20000}, false)) == Labels{"0", "5000", "10000", "15000", "20000"});
  CHECK(labels_of(Axis({0x1p-20, 0x1p4}, true), 200) ==
        Labels{"2^-20", "2^-15", "2^-10", "2^-5", "2^0"});
  CHECK(labels_of(Axis({0.66, 0.95}, true)) ==
        Labels{"0.70", "0.75", "0.80", "0.85", "0.90", "0.95"});
  CHECK(labels_of(Axis({0.15, 1.05}, true), 110) == Labels{"0.2", "0.5", "1"});
  CHECK(labels_of(Axis({1e-7, 0.3}, true)).front() == "10^-7");
  CHECK(labels_of(Axis({0.01, 70}, true), 200) == Labels{"0.01", "0.1", "1", "10", "100"});
  CHECK(labels_of(Axis({0, 100}, false)).back() == "100");
  CHECK(labels_of(Axis({0, 3e-7}, false), 200) == Labels{"0", "10^-7", "2×10^-7", "3×10^-7"});
  CHECK(tools::number_label(1024) == "1024");
  CHECK(tools::number_label(0.05) == "0.05");
  CHECK(tools::number_label(2.5e-7) == "2.5×10^-7");
  CHECK(labels_of(Axis({1, 2}, false, tools::Range{0, 10})).back() == "10");
}

TEST_CASE("at most eight series share a pair of axes, and every curve is drawn") {
  for (std::size_t count = 1; count < 40; ++count) {
    const Figure figure = figure_of(names_of(count, "sm_"), true, true, 1, 10);
    std::size_t drawn = 0;
    for (const tools::Panel& panel : tools::panels_of(figure)) {
      CHECK(panel.series.size() <= tools::most_series);
      drawn += panel.series.size();
    }
    CHECK(drawn == count);
  }
}

TEST_CASE("panels of their own series have legends below them, and hidden curves have names") {
  const std::vector<std::string> machines = {"sm_70",  "sm_75", "sm_80", "sm_89", "sm_90", "sm_100",
                                             "sm_120", "cdna1", "cdna2", "cdna3", "x86"};
  Figure figure = figure_of(machines, true, true, 1e-7, 1e-5);
  for (std::size_t i = 0; i < machines.size(); ++i)
    figure.curves[i].y[0] *= 1 + 0.01 * static_cast<double>(i);
  for (const double width : {336.0, 640.0, 900.0}) {
    const tools::Drawing drawing = tools::chart(figure, {.width = width});
    CHECK(crowded(drawing) == "");
    const std::string svg = drawing.svg();
    const auto y_of = [&](const std::string& words) {
      const std::string key = " y=\"";
      return std::stod(svg.substr(svg.rfind(key, svg.find(">" + words + "<")) + key.size()));
    };
    if (width > 480) CHECK(y_of("K (products in each sum)") < y_of("sm_75"));  // in one row
  }
  // Curves that would hide each other.
  for (const std::size_t same : {2U, 3U}) figure.curves[same].y = figure.curves[1].y;
  for (const std::size_t same : {5U, 6U}) figure.curves[same].y = figure.curves[4].y;
  std::vector<std::string> names;
  std::set<std::string> colours;
  for (const tools::Panel& panel : tools::panels_of(figure))
    for (const tools::Series& s : panel.series) {
      names.push_back(s.name);
      colours.insert(s.style.colour);
    }
  CHECK(names == std::vector<std::string>{"sm_70", "sm_75, sm_80, sm_89", "sm_90, sm_100, sm_120",
                                          "cdna1", "cdna2", "cdna3", "x86"});
  CHECK(colours.size() == names.size());
  CHECK(crowded(tools::chart(figure, {.width = 640})) == "");
}

TEST_CASE("ten formats in panels have headings, short names and one look each") {
  std::vector<std::string> names;
  for (const char* format :
       {"fp16", "e4m3", "e5m2", "bf16", "e3m2", "e2m3", "e2m1", "e3m4", "e5m3", "e6m1"})
    for (const char* loss : {", underflow", ", overflow"})
      names.push_back(format + std::string(loss));
  Figure figure = figure_of(names, false, false, 1, 10);
  for (std::size_t i = 0; i < names.size(); ++i)
    figure.curves[i].y[0] *= 1 + 0.01 * static_cast<double>(i);
  // Nothing overflows in the first four formats and the last two.
  for (const std::size_t same : {3U, 5U, 7U}) figure.curves[same].y = figure.curves[1].y;
  figure.curves[19].y = figure.curves[17].y;
  std::vector<std::string> titles, shown;
  std::map<std::string, std::string> colour_of;
  for (const tools::Panel& panel : tools::panels_of(figure)) {
    titles.push_back(panel.title);
    for (const tools::Series& s : panel.series) {
      shown.push_back(s.name);
      const std::string format = s.name.substr(0, s.name.find(", "));
      CHECK(colour_of.emplace(format, s.style.colour).first->second == s.style.colour);
    }
  }
  CHECK(titles == std::vector<std::string>{"fp16 … bf16", "e3m2 … e3m4", "e5m3 … e6m1"});
  CHECK(shown[1] == "fp16, overflow, 3 more");
  CHECK(shown.back() == "e6m1, underflow");
  CHECK(std::ranges::find(shown, "e5m3, e6m1, overflow") != shown.end());
  // As the bars of the same formats, which have nothing else to be told by.
  std::vector<Curve> bars;
  for (std::size_t i = 0; i < names.size(); i += 2)
    bars.push_back({names[i].substr(0, names[i].find(", "))});
  const std::vector<tools::SeriesStyle> styles = tools::styles_of(bars);
  for (std::size_t i = 0; i < bars.size(); ++i)
    CHECK(colour_of.at(bars[i].name) == styles[i].colour);
}

TEST_CASE("a line that runs along others lets them show, and their marks stand around its own") {
  Figure figure = figure_of({"first", "second", "third"}, true, true, 1, 10);
  const auto count = [](const std::string& text, const std::string& part) {
    std::size_t n = 0;
    for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1))
      ++n;
    return n;
  };
  const std::string alike = tools::chart(figure, {.width = 640}).svg();
  CHECK(count(alike, "stroke-dasharray=\"7 7\"") == 1);
  CHECK(count(alike, "stroke-dasharray=\"7 14\"") == 1);
  for (double& y : figure.curves[1].y) y *= 2;
  for (double& y : figure.curves[2].y) y *= 4;
  const std::string apart = tools::chart(figure, {.width = 640}).svg();
  CHECK(count(apart, "stroke-dasharray=\"7 ") == 0);
}

TEST_CASE("the same thing looks the same in all pictures, and references are open") {
  const auto look = [](const std::vector<Curve>& curves, std::size_t i) {
    return tools::styles_of(curves)[i];
  };
  const std::vector<Curve> one = {{"fp16"}, {"bf16"}, {"e4m3"}},
                           two = {{"E4M3"}, {"something"}, {"fp16"}};
  CHECK(look(one, 0).colour == look(two, 2).colour);
  CHECK(look(one, 0).shape == look(two, 2).shape);
  CHECK(look(one, 2).colour == look(two, 0).colour);
  std::vector<Curve> known = {
      {"normal"}, {"normal, H200", {}, {}, Look::points, true}, {"uniform"}};
  CHECK(look(known, 0).colour == look(known, 1).colour);
  CHECK(look(known, 1).is_open);
  CHECK_FALSE(look(known, 0).is_open);
  // "what, which": the colour says what, the shape which.
  const std::vector<Curve> pairs = {{"fp16, a"}, {"fp16, b"}, {"bf16, a"}, {"bf16, b"}};
  CHECK(look(pairs, 0).colour == look(pairs, 1).colour);
  CHECK(look(pairs, 0).shape != look(pairs, 1).shape);
  CHECK(look(pairs, 0).dashes != look(pairs, 1).dashes);
  CHECK(look(pairs, 1).dashes == look(pairs, 3).dashes);
  std::vector<Curve> eight;
  for (int i = 0; i < 8; ++i) eight.push_back({"thing " + std::to_string(i)});
  std::set<std::string> colours;
  std::set<int> shapes;
  for (const tools::SeriesStyle& s : tools::styles_of(eight)) {
    colours.insert(s.colour);
    shapes.insert(s.shape);
  }
  CHECK(colours.size() == 8);
  CHECK(shapes.size() == 8);
}

TEST_CASE("a tree of additions: every product, and of a long chain its ends") {
  emulator::SumTree chain;
  chain.leaf = 200;
  for (int i = 0; i < 200; ++i) {
    emulator::SumTree next;
    emulator::SumTree leaf;
    leaf.leaf = i;
    next.children = {chain, leaf};
    chain = next;
  }
  const Drawing drawing = tools::sum_tree_picture(chain, 200);
  CHECK(drawing.height() < 800);
  CHECK(crowded(drawing).empty());
  const std::string svg = drawing.svg();
  for (const char* const part : {">199<", ">c<", ">0<", "after 188 more"})
    CHECK(svg.find(part) != std::string::npos);
  CHECK(svg.find(">100<") == std::string::npos);
}

TEST_CASE("plots in characters have rows for categories") {
  Figure figure{"rows", "what", "kept (%)"};
  figure.categories = {"one", "another"};
  figure.curves = {{"x", {0, 1}, {1, 1024}, Look::points}};
  const std::string text = tools::text_plot(figure);
  CHECK(text.find("    one | *\n") != std::string::npos);
  CHECK(text.find("another | ") != std::string::npos);
  CHECK(text.find(" 1024\n") != std::string::npos);
}

TEST_CASE("the extension decides what a picture is", "[tool]") {
  const TemporaryFolder folder;
  const auto drawn = [&](const std::string& name) {
    return run_command({"experiment", "run", "E20", "--plot", folder.path(name)});
  };
  REQUIRE(drawn("a.svg").status == 0);
  CHECK(read_text(folder.path("a.svg")).starts_with("<svg xmlns="));
  for (const char* const name : {"a.jpg", "a", "svg", "a.svg.txt"}) {
    const CommandResult refused = drawn(name);
    CHECK(refused.status == 2);
    CHECK(is_one_error_line(refused.error));
    CHECK(refused.error.find("(valid: .svg, .pdf or .png)") != std::string::npos);
    CHECK_FALSE(std::filesystem::exists(folder.path(name)));
  }
  const CommandResult absent =
      run_shell(folder, "PATH=$folder $command experiment run E20 --plot $folder/a.pdf");
  CHECK(absent.status == 2);
  CHECK(is_one_error_line(absent.error));
  CHECK(absent.error.find("needs rsvg-convert, which is not installed") != std::string::npos);
  CHECK_FALSE(std::filesystem::exists(folder.path("a.pdf")));
  if (run_shell(folder, "command -v rsvg-convert").status != 0) {
    WARN("SKIPPED: rsvg-convert is not installed");
    return;
  }
  REQUIRE(drawn("a.pdf").status == 0);
  REQUIRE(drawn("a.PNG").status == 0);
  CHECK(read_text(folder.path("a.pdf")).starts_with("%PDF-"));
  const std::string png = read_text(folder.path("a.PNG"));
  CHECK(png.starts_with("\x89PNG\r\n\x1a\n"));
  // 640 pixels, three dots each.
  CHECK(png.substr(16, 4) == std::string("\0\0\x07\x80", 4));
}

TEST_CASE("a picture's options are checked before anything is computed") {
  const TemporaryFolder folder;
  const std::string path = folder.path("a.svg");
  struct Case {
    std::vector<std::string> words;
    std::string says;
  };
  for (const Case& c : {Case{{"--width", "300"}, "--plot FILE"},
                        Case{{"--plot", path, "--range", "5:1"}, "is no range"},
                        Case{{"--plot", path, "--range", "0:1"}, "a logarithmic axis has no 0"},
                        Case{{"--plot", path, "--range", "x"}, "is no range"},
                        Case{{"--plot", path, "--height", "100"}, "no room"}}) {
    std::vector<std::string> words = {"experiment", "run", "E30", "--quick"};
    words.insert(words.end(), c.words.begin(), c.words.end());
    const CommandResult result = run_command(words);
    INFO(result.error);
    CHECK(result.status == 2);
    CHECK(is_one_error_line(result.error));
    CHECK(result.error.find(c.says) != std::string::npos);
    CHECK_FALSE(std::filesystem::exists(path));
  }
  REQUIRE(run_command({"experiment", "run", "E30", "--quick", "--plot", path, "--width", "336",
                       "--height", "280", "--x", "lin", "--y", "lin", "--range", "0:5000",
                       "--range", "x=0:9000"})
              .status == 0);
  const std::string svg = read_text(path);
  CHECK(svg.find("width=\"336\" height=\"280\"") != std::string::npos);
  CHECK(svg.find(">5000<") != std::string::npos);
}

}  // namespace
}  // namespace guardbit::tests
