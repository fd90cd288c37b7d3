#include "experiments/quantisation/integer_tensor.hpp"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <string>

#include "formats/support/error.hpp"
#include "formats/support/parallel.hpp"
#include "formats/tensors/tensor.hpp"

namespace guardbit::experiments {

namespace {

/// The group of each number, and the groups' shape.
void assign_groups(const IntegerScheme& scheme, std::string_view where, IntegerTensor& t) {
  const auto count = static_cast<std::size_t>(formats::element_count(t.shape));
  t.group.resize(count);
  if (scheme.granularity == Granularity::tensor) {
    t.group_shape = {1};
    return;
  }
  if (scheme.granularity == Granularity::channel) {
    if (scheme.axis >= t.shape.size())
      throw formats::Error(std::string(where), "has no axis " + std::to_string(scheme.axis));
    std::size_t inner = 1;
    for (std::size_t d = scheme.axis + 1; d < t.shape.size(); ++d)
      inner *= static_cast<std::size_t>(t.shape[d]);
    const auto channels = static_cast<std::size_t>(t.shape[scheme.axis]);
    for (std::size_t i = 0; i < count; ++i)
      t.group[i] = static_cast<std::int32_t>(i / inner % channels);
    t.group_shape = {t.shape[scheme.axis]};
    return;
  }
  const std::int64_t columns = t.shape.empty() ? 1 : t.shape.back();
  const std::int64_t blocks = (columns + scheme.block - 1) / scheme.block;
  const std::int64_t rows = columns == 0 ? 0 : static_cast<std::int64_t>(count) / columns;
  for (std::size_t i = 0; i < count; ++i) {
    const auto at = static_cast<std::int64_t>(i);
    t.group[i] = static_cast<std::int32_t>(at / columns * blocks + at % columns / scheme.block);
  }
  t.group_shape = {rows, blocks};
}

IntegerGrid grid_of(const IntegerScheme& scheme, std::span<const float> numbers, float amax) {
  const int bits = scheme.calibration.bits;
  const bool is_unsigned = scheme.calibration.is_unsigned;
  if (scheme.affine) {
    const auto [least, largest] = std::ranges::minmax_element(numbers);
    if (numbers.empty()) return affine_grid(0, 0, bits, is_unsigned, scheme.arithmetic);
    return affine_grid(std::max(*least, -amax), std::min(*largest, amax), bits, is_unsigned,
                       scheme.arithmetic);
  }
  switch (scheme.arithmetic) {
    case IntegerArithmetic::modelopt: return modelopt_grid(amax, bits, is_unsigned);
    case IntegerArithmetic::pytorch: return pytorch_grid(amax, bits, is_unsigned);
    case IntegerArithmetic::divide: break;
  }
  return divide_grid(amax, bits, is_unsigned);
}

}  // namespace

void require_scheme(const IntegerScheme& scheme, std::string_view where) {
  const auto refuse = [&](const char* why) { throw formats::Error(std::string(where), why); };
  if (scheme.calibration.bits < 2 || scheme.calibration.bits > 8) refuse("bits are 2 to 8");
  if (scheme.affine && scheme.arithmetic == IntegerArithmetic::modelopt)
    refuse("affine needs the arithmetic pytorch or divide: ModelOpt's has no zero point");
  const bool by_histogram =
      scheme.calibrator != Calibrator::max && scheme.calibrator != Calibrator::search;
  if (scheme.granularity == Granularity::block && by_histogram)
    refuse("blocks are calibrated by max or search: they have too few numbers for a histogram");
  if (scheme.block < 1) refuse("a block has at least one number");
}

IntegerTensor quantised(std::span<const float> numbers, std::vector<std::int64_t> shape,
                        const IntegerScheme& scheme, std::string_view where, int threads,
                        const std::function<bool()>& stop) {
  require_scheme(scheme, where);
  IntegerTensor t;
  t.shape = std::move(shape);
  assign_groups(scheme, where, t);
  const auto groups = static_cast<std::size_t>(formats::element_count(t.group_shape));
  std::vector<std::vector<float>> members(groups);
  for (std::size_t i = 0; i < numbers.size(); ++i)
    members[static_cast<std::size_t>(t.group[i])].push_back(numbers[i]);
  t.grids.resize(groups);
  t.amax.resize(groups);
  std::atomic<bool> stopped = false;
  formats::parallel_for(groups, 1, threads, [&](std::size_t begin, std::size_t end) {
    for (std::size_t g = begin; g < end; ++g) {
      if (stopped || (stop && stop())) {
        stopped = true;
        return;
      }
      t.amax[g] = calibrated_amax(scheme.calibrator, members[g], scheme.calibration, where);
      t.grids[g] = grid_of(scheme, members[g], t.amax[g]);
    }
  });
  if (stopped) return {};
  const auto code_of = [&](std::size_t i) {
    return t.grids[static_cast<std::size_t>(t.group[i])].quantised(numbers[i]);
  };
  if (scheme.calibration.is_unsigned) {
    t.unsigned_codes.resize(numbers.size());
    for (std::size_t i = 0; i < numbers.size(); ++i)
      t.unsigned_codes[i] = static_cast<std::uint8_t>(code_of(i));
  } else {
    t.signed_codes.resize(numbers.size());
    for (std::size_t i = 0; i < numbers.size(); ++i)
      t.signed_codes[i] = static_cast<std::int8_t>(code_of(i));
  }
  return t;
}

IntegerErrors errors_of(const IntegerTensor& t, std::span<const float> numbers) {
  IntegerErrors e;
  e.numbers = numbers.size();
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    const IntegerGrid& grid = t.grids[static_cast<std::size_t>(t.group[i])];
    const double x = numbers[i], error = static_cast<double>(t.value(i)) - x;
    const float q = grid.unclamped(numbers[i]);
    if (q < static_cast<float>(grid.low) || q > static_cast<float>(grid.high)) ++e.clipped;
    if (x != 0) {
      ++e.nonzero;
      if (t.value(i) == 0) ++e.zeros_made;
    }
    e.signal += x * x;
    e.noise += error * error;
    e.largest = std::max(e.largest, std::abs(error));
  }
  return e;
}

double IntegerErrors::clipped_percent() const {
  return numbers == 0 ? 0 : 100 * static_cast<double>(clipped) / static_cast<double>(numbers);
}
double IntegerErrors::zeros_percent() const {
  return nonzero == 0 ? 0 : 100 * static_cast<double>(zeros_made) / static_cast<double>(nonzero);
}
double IntegerErrors::sqnr_db() const { return 10 * std::log10(signal / noise); }

}  // namespace guardbit::experiments
