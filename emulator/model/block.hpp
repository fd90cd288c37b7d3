#pragma once

#include <cstddef>
#include <span>

#include "emulator/model/accumulator.hpp"
#include "emulator/model/result.hpp"

// A block: products of one step that are added together with an addend.
namespace guardbit::emulator {

/// The operands of a block: `count` decoded pairs with their scales, and the addend in its own
/// format.
struct Block {
  const AccumulatorSpec& spec;
  const Format& a_format;
  const Format& b_format;
  std::span<const Value> a, b;
  /// per element; empty when unscaled
  std::span<const Value> a_scale, b_scale;
  const Format& scale_format;
  Value addend;
  const Format& addend_format;
  const Format& result_format;
};

/// Product i of a chain as a block of its own, `sum` being the result of those before it.
constexpr Block one_product(const Block& chain, std::size_t i, const Value& sum) {
  return {chain.spec,
          chain.a_format,
          chain.b_format,
          chain.a.subspan(i, 1),
          chain.b.subspan(i, 1),
          {},
          {},
          chain.scale_format,
          sum,
          i == 0 ? chain.addend_format : chain.result_format,
          chain.result_format};
}

constexpr SpecialSum special_sum(const Block& block) {
  SpecialSum specials;
  for (std::size_t i = 0; i < block.a.size(); ++i) {
    specials.include(formats::multiply(block.a[i], block.b[i]));
    if (!block.a_scale.empty()) {
      specials.nan =
          specials.nan || block.a_scale[i].kind == Kind::nan || block.b_scale[i].kind == Kind::nan;
    }
  }
  specials.include(formats::exactly(block.addend));
  return specials;
}

/// The NaN of a factor in RDNA's units: the payload ends in the bits of a3d that fit.
constexpr Unrounded factor_nan(const Format& result) {
  const std::uint64_t payload = 0xa3d & (formats::fraction_mask(result) >> 1);
  return {Kind::nan, true, 0, formats::quiet_bit | payload << (52 - result.fraction_bits), false};
}

/// What the infinities and NaNs of a block make of its sum, as NanPolicy says.
constexpr Unrounded special_value(const Block& block, const SpecialSum& specials) {
  if (!has_chosen_nan(block.spec)) return specials.value();
  bool invalid = false;
  // Products may be infinities because they are too large; the addend's own comes later.
  const bool addend_infinite = block.addend.kind == Kind::infinity;
  SpecialSum infinities;
  infinities.positive_infinity =
      specials.positive_infinity && !(addend_infinite && !block.addend.negative);
  infinities.negative_infinity =
      specials.negative_infinity && !(addend_infinite && block.addend.negative);
  for (std::size_t i = 0; i < block.a.size(); ++i) {
    if (block.a[i].kind == Kind::nan || block.b[i].kind == Kind::nan)
      return factor_nan(block.result_format);
    const Unrounded product = formats::multiply(block.a[i], block.b[i]);
    invalid = invalid || product.kind == Kind::nan;
    infinities.include(product);
  }
  invalid = invalid || (infinities.positive_infinity && infinities.negative_infinity);
  if (!invalid && block.addend.kind == Kind::nan) return operand_nan({&block.addend});
  infinities.include(formats::exactly(block.addend));
  if (!invalid && infinities.value().kind != Kind::nan) return infinities.value();
  return block.spec.nan == NanPolicy::products_alike ? factor_nan(block.result_format)
                                                     : formats::exactly(formats::nan_value(true));
}

}  // namespace guardbit::emulator
