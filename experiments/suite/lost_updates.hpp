#pragma once

#include <vector>

#include "formats/format.hpp"

namespace guardbit::experiments {

/// For one weight w in [1, 2) of a format and one direction: the largest update that leaves
/// round(w + update) at w, found by bisection on multiples of `update_grid`.
struct LostUpdate {
  double weight = 0;
  bool toward_zero = false;
  double largest_lost = 0;
};

/// Multiples of this are tried: 2^-13 of half a unit in the last place of 1.
double update_grid(const formats::Format& format);

/// Every weight in [1, 2), both directions; larger and smaller weights are these times powers of
/// two, as long as they are normal.
std::vector<LostUpdate> lost_updates(const formats::Format& format);

/// The variance of x rounded stochastically: (x - low)(high - x) for its neighbours; 0 past the
/// last.
double stochastic_variance(const formats::Format& format, double x);

}  // namespace guardbit::experiments
