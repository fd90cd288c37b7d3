#include "emulator/gemm/scales.hpp"

#include <algorithm>

#include "formats/support/error.hpp"

namespace guardbit::emulator {

namespace {

using formats::Error;

/// Scales along one side of an operand.
void require_side(std::int64_t elements, std::int64_t scales, std::int64_t block,
                  const std::string& side, const std::string& place) {
  if (scales > elements)
    throw Error(place, "more scales than elements: " + std::to_string(scales) + " for " +
                           std::to_string(elements) + side);
  const std::int64_t each = elements_per_scale(elements, scales, block);
  if ((elements + each - 1) / each != scales)
    throw Error(place, std::to_string(scales) + " scales do not serve " + std::to_string(elements) +
                           side + " in equal blocks");
}

void require_batch(const CodeMatrix& scales, std::int64_t batch, const std::string& place) {
  if (!scales.empty() && scales.batch != 1 && scales.batch != batch)
    throw Error(place, "scales of " + std::to_string(scales.batch) + " matrices, where A has " +
                           std::to_string(batch));
}

}  // namespace

std::int64_t elements_per_scale(std::int64_t elements, std::int64_t scales, std::int64_t block) {
  constexpr std::int64_t usual = 128;
  for (const std::int64_t each : {block, usual})
    if (scales > 1 && each != 0 && (elements + each - 1) / each == scales) return each;
  return (elements + scales - 1) / scales;
}

std::int64_t scale_k_of(const ScaledMatrix& a, const ScaledMatrix& b) {
  const std::int64_t k = a.matrix.columns, of_a = a.scales.empty() ? 1 : a.scales.columns,
                     of_b = b.scales.empty() ? 1 : b.scales.rows;
  for (const ScaledMatrix& x : {a, b}) require_batch(x.scales, a.matrix.batch, x.place);
  require_side(k, of_a, 0, " elements of K", a.place);
  require_side(k, of_b, 0, " elements of K", b.place);
  if (of_a > 1 && of_b > 1 && of_a != of_b)
    throw Error(b.place,
                std::to_string(of_b) + " scales along K, where A has " + std::to_string(of_a));
  const std::int64_t blocks = std::max(of_a, of_b);
  const std::int64_t block = blocks > 1 ? elements_per_scale(k, blocks) : 0;
  if (!a.scales.empty()) require_side(a.matrix.rows, a.scales.rows, block, " rows", a.place);
  if (!b.scales.empty())
    require_side(b.matrix.columns, b.scales.columns, block, " columns", b.place);
  return block;
}

}  // namespace guardbit::emulator
