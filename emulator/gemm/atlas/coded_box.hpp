#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "emulator/gemm/atlas/bit_decoder.hpp"

// A box of small numbers that mostly are what their neighbours are, bit by bit. The same walk reads
// and writes: a coder's `bit(model, wanted)` gives the next bit, or notes the wanted one.
namespace guardbit::emulator::atlas {

class CodedBox {
 public:
  /// What an encoder is given for a cell that may become any number.
  static constexpr std::uint16_t any = 0xffff;

  CodedBox(std::size_t slabs, std::size_t rows, std::size_t columns)
      : slabs_(slabs),
        rows_(rows),
        columns_(columns),
        row_(columns + 3),
        slab_((rows + 2) * row_),
        cells_((slabs + 1) * slab_) {}

  std::uint16_t& cell(std::size_t slab, std::size_t row, std::size_t column) {
    return cells_[(slab + 1) * slab_ + (row + 2) * row_ + column + 2];
  }

  template <class Coder>
  void code(Coder& coder) {
    Models models;
    for (std::size_t slab = 0; slab < slabs_; ++slab) {
      for (std::size_t row = 0; row < rows_; ++row) {
        std::uint16_t* const cells = &cell(slab, row, 0);
        for (std::size_t column = 0; column < columns_; ++column)
          code_cell(coder, models, cells + column, slab == 0);
      }
    }
  }

 private:
  struct Models {
    std::array<BitModel, 4096> as_expected;
    std::array<BitModel, 4> as_neighbour, as_recent;
    std::array<BitModel, 16> is_longer;
    std::array<std::array<BitModel, 4>, 16> digit;
    std::array<std::uint16_t, 4> recent{};
  };

  /// In a plane of three known cells the fourth one, `a` and `b` beside it and `corner` between
  /// them.
  static std::uint16_t fourth(std::uint16_t a, std::uint16_t b, std::uint16_t corner) {
    return b == corner ? a : a == corner ? b : a;
  }

  /// What most planes through a cell and its known neighbours say.
  static std::uint16_t expectation(std::uint16_t left, std::uint16_t up, std::uint16_t back,
                                   std::uint16_t left_up, std::uint16_t left_back,
                                   std::uint16_t up_back, bool first_slab) {
    const std::uint16_t here = fourth(left, up, left_up);
    if (first_slab) return here;
    const std::uint16_t of_row = fourth(left, back, left_back);
    const std::uint16_t of_column = fourth(up, back, up_back);
    if (here == of_row || here == of_column) return here;
    return of_row == of_column ? of_row : left;
  }

  template <class Coder>
  void code_cell(Coder& coder, Models& models, std::uint16_t* at, bool first_slab) const {
    const std::uint16_t* const above = at - row_;
    const std::uint16_t* const before = at - slab_;
    const std::uint16_t left = at[-1], up = above[0], back = before[0];
    const std::array<std::uint16_t, 10> neighbours = {
        left,   up,       back,      above[-1],      before[-1], *(before - row_),
        at[-2], above[1], before[1], *(above - row_)};
    int others = 0;
    for (const std::uint16_t neighbour : neighbours) others |= neighbour ^ left;
    std::uint16_t expected = left;
    std::size_t context = (first_slab ? 1u : 0u) << neighbours.size();
    if (others == 0) {
      context |= (1u << neighbours.size()) - 1;
    } else {
      expected = expectation(left, up, back, above[-1], before[-1], *(before - row_), first_slab);
      for (std::size_t i = 0; i < neighbours.size(); ++i)
        context |= (neighbours[i] == expected ? 1u : 0u) << i;
    }
    context = 2 * context + (expected != 0 ? 1 : 0);
    const std::uint16_t wanted = *at;
    if (coder.bit(models.as_expected[context], wanted == expected || wanted == any))
      *at = expected;
    else
      *at = unexpected(coder, models, expected, {left, up, back}, wanted);
  }

  template <class Coder>
  static std::uint16_t unexpected(Coder& coder, Models& models, std::uint16_t expected,
                                  const std::array<std::uint16_t, 3>& neighbours,
                                  std::uint16_t wanted) {
    if (expected != 0 && coder.bit(models.as_neighbour[3], wanted == 0)) return 0;
    for (std::size_t i = 0; i < neighbours.size(); ++i) {
      const std::uint16_t other = neighbours[i];
      const auto* const end = neighbours.begin() + i;
      if (other == 0 || other == expected || std::find(neighbours.begin(), end, other) != end)
        continue;
      if (coder.bit(models.as_neighbour[i], wanted == other)) return other;
    }
    std::array<std::uint16_t, 4>& recent = models.recent;
    for (std::size_t i = 0; i < recent.size(); ++i) {
      const std::uint16_t other = recent[i];
      if (other == 0 || other == expected ||
          std::find(neighbours.begin(), neighbours.end(), other) != neighbours.end())
        continue;
      if (coder.bit(models.as_recent[i], wanted == other)) {
        std::rotate(recent.begin(), recent.begin() + i, recent.begin() + i + 1);
        return other;
      }
    }
    std::rotate(recent.begin(), recent.end() - 1, recent.end());
    recent[0] = number(coder, models, wanted);
    return recent[0];
  }

  /// A number other than 0: how many binary digits follow the first one, and they.
  template <class Coder>
  static std::uint16_t number(Coder& coder, Models& models, std::uint16_t wanted) {
    const std::size_t wanted_digits = wanted == 0 ? 0 : std::bit_width(wanted) - 1u;
    std::size_t digits = 0;
    while (digits < 15 && coder.bit(models.is_longer[digits], wanted_digits > digits)) ++digits;
    std::uint16_t result = 1;
    for (std::size_t i = digits; i > 0; --i) {
      // The first of them, the second one after a 0 or a 1, all others.
      const std::size_t place = i == digits ? 0 : i + 1 == digits ? 1u + (result & 1u) : 3;
      const bool bit = coder.bit(models.digit[digits][place], (wanted >> (i - 1) & 1) != 0);
      result = static_cast<std::uint16_t>(2 * result + (bit ? 1 : 0));
    }
    return result;
  }

  std::size_t slabs_, rows_, columns_, row_, slab_;
  std::vector<std::uint16_t> cells_;
};

}  // namespace guardbit::emulator::atlas
