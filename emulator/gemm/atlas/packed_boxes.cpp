#include "emulator/gemm/atlas/packed_boxes.hpp"

#include <algorithm>
#include <iterator>

#include "emulator/gemm/atlas/coded_box.hpp"
#include "emulator/gemm/atlas/packed_trees.hpp"

namespace guardbit::emulator::atlas {
namespace {

std::vector<std::uint8_t> bytes_of(std::string_view text) {
  std::vector<std::uint8_t> bytes;
  bytes.reserve(text.size() / 4 * 3);
  for (Digits digits(text); !digits.at_end();) {
    const std::uint32_t three = digits.number(4);
    for (const int shift : {16, 8, 0}) bytes.push_back(static_cast<std::uint8_t>(three >> shift));
  }
  return bytes;
}

}  // namespace

PackedBoxes::PackedBoxes(std::string_view text, std::span<const std::uint32_t> ends,
                         std::size_t slabs_of_box)
    : text_(text),
      ends_(ends),
      slabs_of_box_(slabs_of_box),
      boxes_(std::make_unique<Box[]>(ends.size() - 1)) {}

PackedBoxes::~PackedBoxes() = default;

std::vector<PackedBoxes::Run> PackedBoxes::unpacked(std::string_view text, const Extent& extent) {
  const std::vector<std::uint8_t> bytes = bytes_of(text);
  BitDecoder decoder(bytes);
  CodedBox box(extent.slabs, extent.rows, extent.columns);
  box.code(decoder);
  std::vector<Run> runs = {{0, 0}};
  std::uint32_t cell = 0;
  for (std::size_t slab = 0; slab < extent.slabs; ++slab) {
    for (std::size_t row = 0; row < extent.rows; ++row) {
      for (std::size_t column = 0; column < extent.columns; ++column, ++cell) {
        const std::uint16_t number = box.cell(slab, row, column);
        if (number != runs.back().number) runs.push_back({cell, number});
      }
    }
  }
  return runs;
}

std::uint16_t PackedBoxes::number(std::size_t first, const Extent& block, const Cell& cell) const {
  const std::size_t begin = cell.slab / slabs_of_box_ * slabs_of_box_;
  const std::size_t number = first + cell.slab / slabs_of_box_;
  Box& box = boxes_[number];
  std::call_once(box.flag, [&] {
    box.runs = unpacked(text_.substr(ends_[number], ends_[number + 1] - ends_[number]),
                        {std::min(slabs_of_box_, block.slabs - begin), block.rows, block.columns});
  });
  const std::size_t place =
      ((cell.slab - begin) * block.rows + cell.row) * block.columns + cell.column;
  const auto next =
      std::upper_bound(box.runs.begin(), box.runs.end(), place,
                       [](std::size_t wanted, const Run& run) { return wanted < run.first; });
  return std::prev(next)->number;
}

}  // namespace guardbit::emulator::atlas
