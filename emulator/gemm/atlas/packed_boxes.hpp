#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <string_view>
#include <vector>

// Boxes of small numbers (coded_box.hpp) in a text of base 64, each unpacked when it is asked for
// first, which takes some milliseconds.
namespace guardbit::emulator::atlas {

/// Numbers along slabs, rows and columns.
struct Extent {
  std::size_t slabs = 0, rows = 0, columns = 0;
};

/// Where a number stands along them.
struct Cell {
  std::size_t slab = 0, row = 0, column = 0;
};

/// How many boxes a block of so many slabs is cut into.
constexpr std::size_t box_count(std::size_t slabs, std::size_t slabs_of_box) {
  return (slabs + slabs_of_box - 1) / slabs_of_box;
}

/// Blocks of numbers one after another, each cut into boxes of so many slabs.
class PackedBoxes {
 public:
  /// `ends`: where each box begins in the text, and where the last one ends.
  PackedBoxes(std::string_view text, std::span<const std::uint32_t> ends, std::size_t slabs_of_box);
  ~PackedBoxes();
  PackedBoxes(const PackedBoxes&) = delete;
  PackedBoxes& operator=(const PackedBoxes&) = delete;

  /// A number of the block that begins with box `first`.
  std::uint16_t number(std::size_t first, const Extent& block, const Cell& cell) const;

 private:
  /// From a cell of a box on all have a number, up to the next such cell.
  struct Run {
    std::uint32_t first;
    std::uint16_t number;
  };
  struct Box {
    std::once_flag flag;
    std::vector<Run> runs;
  };

  static std::vector<Run> unpacked(std::string_view text, const Extent& extent);

  std::string_view text_;
  std::span<const std::uint32_t> ends_;
  std::size_t slabs_of_box_;
  std::unique_ptr<Box[]> boxes_;
};

}  // namespace guardbit::emulator::atlas
