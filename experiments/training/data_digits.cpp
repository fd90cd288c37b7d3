#include <algorithm>
#include <array>
#include <filesystem>
#include <string_view>

#include "experiments/harness/random_numbers.hpp"
#include "experiments/training/data.hpp"
#include "formats/files/idx.hpp"
#include "formats/support/error.hpp"
#include "formats/support/parallel.hpp"
#include "formats/support/printable.hpp"

namespace guardbit::experiments::training {

namespace {

constexpr int glyph_height = 7, glyph_width = 5;

/// Two ways to write each digit.
constexpr std::array<std::array<std::string_view, 2>, 10> glyphs = {{
    {".###.#...##...##...##...##...#.###.", ".##..#..#.#..#.#..#.#..#.#..#..##.."},
    {"..#...##....#....#....#....#...###.", "....#...##..#.#....#....#....#....#"},
    {".###.#...#....#...#...#...#...#####", ".##..#..#....#....#.###.#.#....#.##"},
    {".###.#...#....#..##.....##...#.###.", "#####...#...#...##.....#.#...#.###."},
    {"...#...##..#.#.#..#.#####...#....#.", "#..#.#..#.#..#.#####...#....#....#."},
    {"######....####.....#....##...#.###.", ".#####....#....###.....#.....#####."},
    {"..##..#...#....####.#...##...#.###.", "..#...#...#....#.##.##..##...#.###."},
    {"#####....#...#...#...#....#....#...", "#####....#...#..####...#...#....#.."},
    {".###.#...##...#.###.#...##...#.###.", "..##..#..#.#.#...#...#.#.#..#..##.."},
    {".###.#...##...#.####....#...#..##..", ".###.#..##.####....#....#....#...#."},
}};

/// 1 inside the bitmap's strokes, 0 elsewhere, linear between the centres of its cells.
double ink(std::string_view glyph, double row, double column) {
  const auto cell = [&](int i, int j) {
    if (i < 0 || i >= glyph_height || j < 0 || j >= glyph_width) return 0.0;
    const int at = i * glyph_width + j;
    return glyph[static_cast<std::size_t>(at)] == '#' ? 1.0 : 0.0;
  };
  const int i = static_cast<int>(row + 100.0) - 100, j = static_cast<int>(column + 100.0) - 100;
  const double y = row - i, x = column - j;
  return (1 - y) * ((1 - x) * cell(i, j) + x * cell(i, j + 1)) +
         y * ((1 - x) * cell(i + 1, j) + x * cell(i + 1, j + 1));
}

void draw(std::uint64_t seed, std::int64_t index, ByteImages& images) {
  const std::int64_t pixels = images.height * images.width;
  const Draws draws(seed, "digit");
  std::uint64_t next = static_cast<std::uint64_t>(index) * 2048;
  const auto uniform = [&](double from, double to) {
    return from + (to - from) * draws.uniform(next++);
  };
  const auto label = static_cast<std::size_t>(uniform(0, 10));
  const std::string_view glyph = glyphs.at(label).at(uniform(0, 1) < 0.7 ? 0 : 1);
  const double height = uniform(15, 23), width = uniform(9, 17);
  const double shear = uniform(-0.25, 0.25), tilt = uniform(-0.15, 0.15);
  const double down = uniform(-3, 3), right = uniform(-3, 3);
  const double weight = uniform(1.2, 2.2), noise = uniform(0, 0.15);
  const double middle_y = static_cast<double>(images.height - 1) / 2 + down;
  const double middle_x = static_cast<double>(images.width - 1) / 2 + right;
  std::uint8_t* const to = images.pixels.data() + index * pixels;
  for (std::int64_t at = 0; at < pixels; ++at) {
    const std::int64_t i = at / images.width, j = at % images.width;
    const double y = static_cast<double>(i) - middle_y, x = static_cast<double>(j) - middle_x;
    const double row = (y + tilt * x) / height * glyph_height + (glyph_height - 1) / 2.0;
    const double column = (x + shear * y) / width * glyph_width + (glyph_width - 1) / 2.0;
    const double value =
        std::min(1.0, weight * ink(glyph, row, column)) * (1 - noise) + noise * uniform(0, 1);
    to[at] = static_cast<std::uint8_t>(255.0 * value);
  }
  images.labels[static_cast<std::size_t>(index)] = static_cast<std::uint8_t>(label);
}

}  // namespace

ByteImages draw_digits(std::int64_t count, std::uint64_t seed) {
  ByteImages images;
  images.count = count;
  images.pixels.resize(static_cast<std::size_t>(count * images.height * images.width));
  images.labels.resize(static_cast<std::size_t>(count));
  formats::parallel_for(static_cast<std::size_t>(count), 64, 0,
                        [&](std::size_t begin, std::size_t end) {
                          for (std::size_t i = begin; i < end; ++i)
                            draw(seed, static_cast<std::int64_t>(i), images);
                        });
  return images;
}

void write_digits(const std::string& folder, std::int64_t training, std::int64_t test,
                  std::uint64_t seed) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error) throw formats::Error(formats::printable(folder), "cannot make this folder");
  const auto write = [&](const std::string& name, const ByteImages& images) {
    formats::write_idx(folder + "/" + name + "-images-idx3-ubyte",
                       {images.count, images.height, images.width}, images.pixels);
    formats::write_idx(folder + "/" + name + "-labels-idx1-ubyte", {images.count}, images.labels);
  };
  // Other digits, not other bits of the same ones: the test's stream has a seed of its own.
  write("train", draw_digits(training, 2 * seed));
  write("t10k", draw_digits(test, 2 * seed + 1));
}

}  // namespace guardbit::experiments::training
