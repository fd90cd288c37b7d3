#include "tools/products/function_picture.hpp"

#include <algorithm>
#include <string>

namespace guardbit::tools {

Drawing function_error_picture(const emulator::Function& function,
                               const emulator::FunctionErrors& errors,
                               const ChartOptions& options) {
  experiments::Figure figure{std::string(function.name) + ", " + function.meaning.data(),
                             "result - exact (ulp)", "share of the results (%)"};
  const auto& counts = errors.histogram;
  const auto is_filled = [](std::uint64_t n) { return n != 0; };
  const auto first = std::ranges::find_if(counts, is_filled) - counts.begin();
  const auto last = counts.rend() - std::find_if(counts.rbegin(), counts.rend(), is_filled);
  experiments::Curve curve{"", {}, {}, experiments::Look::bars};
  const auto low_end = [&](auto bin) {
    return (static_cast<double>(bin) - static_cast<double>(counts.size()) / 2) / 8;
  };
  for (auto bin = first; bin < last; ++bin) {
    curve.add(low_end(bin), 100 * static_cast<double>(counts.at(static_cast<std::size_t>(bin))) /
                                static_cast<double>(errors.results));
  }
  if (first < last) {
    curve.add(low_end(last), 0);
    figure.curves.push_back(curve);
  }
  return chart(figure, options);
}

}  // namespace guardbit::tools
