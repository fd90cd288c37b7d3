#pragma once

// Rows and columns of D in which something happened.

#include <cstdint>
#include <string>
#include <vector>

#include "emulator/faults/product_numbers.hpp"

namespace guardbit::emulator {

/// Rows and columns of D, of which some may be looked at alone.
struct Region {
  std::vector<std::int64_t> rows, columns;
};

/// The rows and columns in which outputs are wrong.
Region extent_of(const Disagreement& wrong, std::int64_t columns);
/// Groups of wrong outputs that touch, or nearly: in the same or neighbouring squares of 8 x 8.
/// Those with most wrong outputs come first.
std::vector<Region> areas_of(const Disagreement& wrong, std::int64_t m, std::int64_t n);
/// "rows 16 to 31, columns 0 to 15"
std::string text_of(const ProductNumbers& x, const Region& region);

}  // namespace guardbit::emulator
