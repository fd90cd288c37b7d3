#include "experiments/suite/lost_updates.hpp"

#include <cmath>

#include "emulator/gemm/scalar.hpp"
#include "formats/neighbour.hpp"

namespace guardbit::experiments {

double update_grid(const formats::Format& format) {
  return std::ldexp(1.0, -formats::precision(format) - 13);
}

std::vector<LostUpdate> lost_updates(const formats::Format& format) {
  const double grid = update_grid(format);
  const int weights = 1 << format.fraction_bits;
  std::vector<LostUpdate> result;
  for (int f = 0; f < weights; ++f) {
    const double w = 1 + static_cast<double>(f) / weights;
    for (const bool toward_zero : {false, true}) {
      // FP64 holds w + update exactly: they span precision + 15 bits.
      const auto lost = [&](int multiple) {
        const double update = multiple * grid;
        return emulator::scalar::rounded(format, toward_zero ? w - update : w + update) == w;
      };
      int low = 0, high = 1 << 15;  // at most two units in the last place
      while (high - low > 1) {
        const int middle = (low + high) / 2;
        (lost(middle) ? low : high) = middle;
      }
      result.push_back({w, toward_zero, low * grid});
    }
  }
  return result;
}

double stochastic_variance(const formats::Format& format, double x) {
  const double near = emulator::scalar::rounded(format, x);
  if (near == x || !std::isfinite(near)) return 0;
  const auto code = formats::neighbour(format, emulator::scalar::encoded(format, near), x > near);
  const double other = code ? emulator::scalar::decoded(format, *code) : near;
  return std::isfinite(other) ? std::abs(x - near) * std::abs(other - x) : 0;
}

}  // namespace guardbit::experiments
