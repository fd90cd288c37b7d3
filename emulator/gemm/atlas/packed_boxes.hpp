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

class PackedBoxes {
 public:
  /// `ends`: where each box begins in the text, and where the last one ends.
  PackedBoxes(std::string_view text, std::span<const std::uint32_t> ends);
  ~PackedBoxes();
  PackedBoxes(const PackedBoxes&) = delete;
  PackedBoxes& operator=(const PackedBoxes&) = delete;

  /// The number of a cell; cells are counted along columns, then rows, then slabs.
  std::uint16_t number(std::size_t box, const Extent& extent, std::size_t cell) const;

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
  std::unique_ptr<Box[]> boxes_;
};

}  // namespace guardbit::emulator::atlas
