#include "experiments/scaling/recipes.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <limits>
#include <random>
#include <set>

#include "experiments/scaling/element_grid.hpp"
#include "formats/codec.hpp"
#include "formats/conversion/block_quantisation.hpp"
#include "formats/format_catalogue.hpp"
#include "formats/support/error.hpp"
#include "formats/support/words.hpp"
#include "formats/tensors/storage.hpp"
#include "tests/catch.hpp"

namespace guardbit::experiments {
namespace {

constexpr float infinity = std::numeric_limits<float>::infinity();
constexpr float quiet_nan = std::numeric_limits<float>::quiet_NaN();
constexpr float largest_float = std::numeric_limits<float>::max();

constexpr std::array mx_elements = {formats::e4m3, formats::e5m2, formats::e3m2, formats::e2m3,
                                    formats::e2m1};

Recipe recipe_of(const std::string& name) {
  RecipeVariants variants;
  variants.histories = {1024, 2};
  for (const Recipe& recipe : known_recipes(variants)) {
    if (recipe.name == name) return recipe;
  }
  FAIL("no recipe " + name);
  return {};
}

RecipeOutcome once(const std::string& name, const std::vector<float>& values,
                   std::size_t columns = 1, Layout layout = Layout::flat) {
  RecipeState state;
  return apply(recipe_of(name), {values, columns}, layout, state);
}

std::vector<float> gradients(std::size_t count, std::uint32_t seed = 5) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal;
  std::uniform_real_distribution<float> exponent(-30, 0);
  std::vector<float> values(count);
  for (float& x : values) x = normal(random) * std::exp2(exponent(random));
  for (std::size_t i = 0; i < count; i += 7) values[i] = 0;
  return values;
}

}  // namespace

TEST_CASE("MX scales: floor, ceil and rceil are the rules of block quantisation") {
  using formats::Rounding, formats::ScaleRule;
  constexpr std::array rules = {
      std::pair(MxMode::floor, formats::scale_of_exponents),
      std::pair(MxMode::ceil, ScaleRule{ScaleRule::Divisor::largest_power, Rounding::upward}),
      std::pair(MxMode::rceil, formats::scale_without_overflow)};
  std::mt19937 random(1);
  for (const formats::Format& element : mx_elements) {
    for (const auto& [mode, rule] : rules) {
      const formats::BlockFormat block = {element, 0, formats::e8m0, 32, {}};
      formats::BlockQuantisationOptions options;
      options.rule = rule;
      for (std::uint32_t exponent = 1; exponent < 255; ++exponent) {
        for (int i = 0; i < 24; ++i) {
          // Around powers of two, the largest number, and anywhere.
          const std::uint32_t fraction =
              i < 3 ? static_cast<std::uint32_t>(i)
              : i < 10
                  ? (static_cast<std::uint32_t>(max_finite_code(element) & fraction_mask(element))
                     << (23 - element.fraction_bits)) +
                        static_cast<std::uint32_t>(i - 6)
                  : static_cast<std::uint32_t>(random());
          const std::uint32_t code = exponent << 23 | (fraction & 0x7FFFFFU);
          const auto expected =
              formats::block_scale(block, formats::decode(formats::fp32, code), options);
          const auto got = mx_scale_code(mode, element, std::bit_cast<float>(code));
          // The quotient in FP32 may lose, among its subnormal numbers, the little by which it
          // exceeds 2^-127.
          const bool is_lost_sliver = mode == MxMode::rceil && expected == 1 && got == 0;
          CAPTURE(name_of(element), formats::word_of(mode), exponent, fraction);
          if (!is_lost_sliver) REQUIRE(got == expected);
        }
      }
    }
  }
}

TEST_CASE("MX scales: even rounds the largest magnitude to the element's precision first") {
  for (const formats::Format& element : mx_elements) {
    const int emax = max_exponent(element);
    const float half_ulp = std::exp2(-static_cast<float>(element.fraction_bits) - 1);
    for (int k = -100; k <= 100; k += 10) {
      const float power = std::ldexp(1.0F, k);
      const auto code = [&](float fraction) {
        return static_cast<int>(mx_scale_code(MxMode::even, element, fraction * power)) - 127;
      };
      CHECK(code(1) == k - emax);
      CHECK(code(std::nextafter(2 - half_ulp, 0.0F)) == k - emax);
      CHECK(code(2 - half_ulp) == k - emax + 1);
    }
  }
}

TEST_CASE("MX scales: zero, tiny, infinite and NaN blocks") {
  for (const MxMode mode : {MxMode::floor, MxMode::ceil, MxMode::even, MxMode::rceil}) {
    CHECK(mx_scale_code(mode, formats::e4m3, 0) == 0);
    CHECK(mx_scale_code(mode, formats::e4m3, 0x1p-149F) == 0);
    CHECK(mx_scale_code(mode, formats::e4m3, quiet_nan) == 255);
  }
  CHECK(mx_scale_code(MxMode::rceil, formats::e4m3, infinity) == 254);
  CHECK(mx_scale_code(MxMode::floor, formats::e4m3, infinity) == 247);
  // Of the quotient 2^-127 (code 0) and what comes after it.
  CHECK(mx_scale_code(MxMode::rceil, formats::e4m3, 448 * 0x1p-127F) == 0);
  CHECK(mx_scale_code(MxMode::rceil, formats::e4m3, 449 * 0x1p-127F) == 1);
  CHECK(mx_scale_code(MxMode::rceil, formats::e4m3, 448 * 0x1p-126F) == 1);
  CHECK(mx_scale_code(MxMode::rceil, formats::e4m3, 449 * 0x1p-126F) == 2);
}

TEST_CASE("MX scales: how often and how far floor clips") {
  // EXPERIMENTS.md 1.5, of amaxes spread evenly over a binade's logarithm.
  struct Row {
    formats::Format element;
    double share, worst;
  };
  for (const Row& row : {Row{formats::e4m3, 0.19, 0.125}, Row{formats::e5m2, 0.19, 0.125},
                         Row{formats::e2m1, 0.42, 0.25}, Row{formats::e2m3, 0.09, 0.0625},
                         Row{formats::e3m2, 0.19, 0.125}}) {
    const double largest = ElementGrid(row.element).largest();
    int clipped = 0;
    double worst = 0;
    constexpr int samples = 20000;
    for (int i = 0; i < samples; ++i) {
      const float amax = std::exp2(static_cast<float>(i) / samples);
      const GroupScale scale = mx_scale(MxMode::floor, row.element, amax);
      const double y = static_cast<double>(amax) / scale.decode;
      clipped += y > largest ? 1 : 0;
      worst = std::max(worst, 1 - largest / y);
      const GroupScale up = mx_scale(MxMode::rceil, row.element, amax);
      CHECK(static_cast<double>(amax) / up.decode <= largest);
    }
    CHECK(std::fabs(static_cast<double>(clipped) / samples - row.share) < 0.006);
    CHECK(std::fabs(worst - row.worst) < 1e-3);
  }
}

TEST_CASE("recipes: MX stores what block quantisation stores") {
  const std::vector<float> values = gradients(1000);
  const std::array rules = {std::pair("_floor", formats::scale_of_exponents),
                            std::pair("_rceil", formats::scale_without_overflow)};
  const std::array blocks = {
      std::pair("mxfp8_e4m3", formats::mxfp8_e4m3), std::pair("mxfp8_e5m2", formats::mxfp8_e5m2),
      std::pair("mxfp6_e3m2", formats::mxfp6_e3m2), std::pair("mxfp6_e2m3", formats::mxfp6_e2m3),
      std::pair("mxfp4", formats::mxfp4)};
  for (const auto& [name, block] : blocks) {
    for (const auto& [mode, rule] : rules) {
      formats::BlockQuantisationOptions options;
      options.rule = rule;
      const formats::BlockQuantisation quantise(block, options);
      const auto length = static_cast<std::int64_t>(values.size());
      std::vector<std::byte> elements(static_cast<std::size_t>(element_bytes(block, length)));
      std::vector<std::byte> scales(static_cast<std::size_t>(scale_bytes(block, length)));
      quantise(std::as_bytes(std::span(values)), 1, length, elements, scales);
      RecipeOutcome expected;
      expected.bytes = elements.size() + scales.size();
      for (std::size_t i = 0; i < values.size(); ++i) {
        const std::uint64_t code =
            formats::load_code(elements, block.element, formats::Packing::dense, i);
        const auto back = decode_element(block, code, std::to_integer<unsigned>(scales[i / 32]));
        const double number = std::bit_cast<double>(encode(formats::fp64, back));
        if (number == 0 && values[i] != 0) ++expected.underflow;
        const double error = static_cast<double>(values[i]) - number;
        if (error == 0) continue;
        int exponent = 0;
        const double significand = std::frexp(std::fabs(error), &exponent);
        const auto integer = static_cast<std::uint64_t>(std::ldexp(significand, 53));
        Sum192 square;
        square.add(formats::uint128{integer} * integer);
        expected.noise.add(square, 2 * (exponent - 53));
      }
      RecipeOutcome got = once(std::string(name) + mode, values);
      CAPTURE(name, mode);
      CHECK(got.underflow == expected.underflow);
      CHECK(got.bytes == expected.bytes);
      CHECK(got.noise == expected.noise);
      CHECK(got.nonfinite == 0);
    }
  }
}

TEST_CASE("current scaling: Transformer Engine's and torchao's") {
  for (const float amax : {0.0F, infinity, quiet_nan}) {
    CHECK(te_current_scale(amax, 448, false).encode == 1);
    CHECK(te_current_scale(amax, 448, true).encode == 1);
  }
  CHECK(te_current_scale(3, 448, false).encode == 448.0F / 3.0F);
  CHECK(te_current_scale(3, 448, true).encode == 128);  // down
  CHECK(te_current_scale(1e-3F, 448, false, 1).encode == 448);
  CHECK(te_current_scale(0x1p-149F, 448, false).encode == largest_float);
  CHECK(te_current_scale(0x1p-149F, 448, true).encode == 0x1p127F);
  CHECK(te_current_scale(0x1p-149F, 448, false, 0, 0x1.fep127F).encode == 0x1.fep127F);
  CHECK(torchao_scale(0, 448, false).encode == static_cast<float>(448 / 1e-12));
  CHECK(torchao_scale(3, 448, false).encode == static_cast<float>(448.0 / 3.0));
  CHECK(torchao_scale(3, 448, true).encode == 128);
}

TEST_CASE("DeepSeek tiles: the floor of 1e-4 loses quiet tiles") {
  // Half of E4M3's least number at the scale 1e-4/448: 2.18e-10.
  std::vector<float> tile(128, 0);
  const double scale = static_cast<double>(1e-4F / 448.0F);
  const auto edge = static_cast<float>(0x1p-10 * scale);
  CHECK(edge == Approx(2.18e-10).epsilon(1e-3));
  tile = {edge * 0.999F, edge * 1.001F, 0};
  CHECK(once("e4m3_1x128_floor1e-4", tile).underflow == 1);
  CHECK(once("e4m3_1x128", tile).underflow == 0);
  CHECK(once("e4m3_128x128_floor1e-4", tile, 3).underflow == 1);
  CHECK(deepgemm_scale(0, 448, 0, false).encode == 1);
  CHECK(deepgemm_scale(0, 448, 1e-4F, false).decode == scale);
  CHECK(deepgemm_scale(448, 448, 0, true).decode == 1);
  CHECK(deepgemm_scale(449, 448, 0, true).decode == 2);
  CHECK(deepgemm_scale(0x1p-149F, 448, 0, true).decode == 0x1p-126);  // clamped to [1, 254]
}

TEST_CASE("NVFP4: the scale of a tiny block is zero, or E4M3's smallest normal number") {
  // Tensor amax 1: 448 * 6 divided by it; a block of 1e-6 asks for 4.5e-4, which E4M3 rounds to 0.
  std::vector<float> values(32, 1e-6F);
  values[0] = 1;
  const RecipeOutcome te = once("nvfp4", values);
  CHECK(te.underflow == 31);  // of the first block by rounding, of the second by its scale
  CHECK(te.saturated == 0);
  const Nvfp4Scales scales(Nvfp4Rule::transformer_engine, 1);
  CHECK(scales.tensor_scale() == 2688);
  CHECK(scales.block(1e-6F).decode == 0);
  CHECK(scales.block(1).decode == 448 * static_cast<double>(1.0F / 2688.0F));
  const Nvfp4Scales torchao(Nvfp4Rule::torchao, 1);
  CHECK(torchao.block(1e-6F).decode == 0x1p-6 * static_cast<double>(1.0F / 2688.0F));
  // 1e-6 over that scale is 0.172: below the tie at 0.25, but 2e-6 is not.
  CHECK(once("nvfp4_torchao", values).underflow == 31);
  std::fill(values.begin() + 16, values.end(), 2e-6F);
  CHECK(once("nvfp4_torchao", values).underflow == 15);
  CHECK(once("nvfp4", values).underflow == 31 - (scales.block(2e-6F).decode == 0 ? 0 : 16));

  CHECK(Nvfp4Scales(Nvfp4Rule::transformer_engine, 0).tensor_scale() == 1);
  CHECK(Nvfp4Scales(Nvfp4Rule::transformer_engine, infinity).tensor_scale() == 1);
  CHECK(Nvfp4Scales(Nvfp4Rule::transformer_engine, 0x1p-149F).tensor_scale() == largest_float);
  const ElementGrid e2m1(formats::e2m1);
  for (const auto& [y, q] :
       {std::pair(0.25, 0.0), std::pair(0.75, 1.0), std::pair(1.25, 1.0), std::pair(1.75, 2.0),
        std::pair(2.5, 2.0), std::pair(3.5, 4.0), std::pair(5.0, 4.0)})
    CHECK(e2m1.nearest(y).value == q);
}

TEST_CASE("delayed scaling: first, zero and rolled amaxes") {
  DelayedRules rules;
  rules.history = 4;
  DelayedScale scale(rules);
  CHECK(scale.scale() == 1);
  scale.update();  // nothing seen
  CHECK(scale.scale() == 1);
  scale.observe(2);
  scale.observe(1);
  scale.observe(quiet_nan);
  scale.update();
  CHECK(scale.scale() == 224);
  CHECK(scale.history() == std::vector<float>{0, 0, 0, 2});
  scale.observe(1);
  scale.update();
  CHECK(scale.scale() == 224);  // the largest of the window
  scale.update();               // the module did not run: the bulk kernel leaves the history
  CHECK(scale.history() == std::vector<float>{0, 0, 2, 1});
  scale.observe(1);
  scale.update();
  CHECK(scale.scale() == 224);
  CHECK(scale.history() == std::vector<float>{0, 2, 1, 1});
  scale.observe(1);
  scale.update();  // the slot that drops out counts once more
  CHECK(scale.scale() == 224);
  scale.observe(1);
  scale.update();
  CHECK(scale.scale() == 448);

  rules.kernel = DelayedRules::Kernel::single;
  DelayedScale single(rules);
  single.observe(2);
  single.update();
  single.update();
  CHECK(single.history() == std::vector<float>{0, 0, 2, 0});
  CHECK(single.scale() == 224);

  DelayedScale ranks(rules);
  ranks.observe(2);
  ranks.update(4);  // another rank saw more
  CHECK(ranks.scale() == 112);
  rules.history = 0;
  CHECK_THROWS_AS(DelayedScale(rules), formats::Error);
}

TEST_CASE("delayed scaling: an infinite amax freezes the scale for the whole window") {
  const auto frozen_updates = [](DelayedRules rules) {
    DelayedScale scale(rules);
    scale.observe(1);
    scale.update();
    scale.observe(infinity);
    int count = 0;
    // Gradients twice as large: a scale that follows them is half as large.
    for (scale.update(); scale.scale() == 448; scale.update()) {
      ++count;
      scale.observe(2);
    }
    return count;
  };
  DelayedRules rules;
  CHECK(frozen_updates(rules) == 1024);
  rules.history = 16;
  CHECK(frozen_updates(rules) == 16);
  rules.algorithm = DelayedRules::Algorithm::most_recent;
  CHECK(frozen_updates(rules) == 1);
}

TEST_CASE("delayed scaling: margin, tiny amaxes, and the fallback in Python") {
  DelayedRules rules;
  rules.margin = 8;
  const auto after = [&](float amax) {
    DelayedScale scale(rules);
    scale.observe(amax);
    scale.update();
    return scale.scale();
  };
  CHECK(after(1) == 1.75F);
  CHECK(after(0x1p-149F) == largest_float);
  // 448/amax overflows, 448 * 2^-8 / amax does not.
  CHECK(after(0x1p-120F) == 1.75F * 0x1p120F);
  rules.python = true;
  CHECK(after(1) == 1.75F);
  CHECK(after(0x1p-120F) == largest_float);
}

TEST_CASE("recipes: delayed scaling goes from step to step, current scaling does not") {
  const Recipe delayed = recipe_of("e4m3_delayed_max");
  RecipeState state;
  const std::vector<float> small = {1e-4F, 2e-4F, -1e-4F};
  // At scale 1 all are below half of E4M3's least number, 2^-10; afterwards none is.
  CHECK(apply(delayed, {small, 3}, Layout::flat, state).underflow == 3);
  CHECK(apply(delayed, {small, 3}, Layout::flat, state).underflow == 0);
  const std::vector<float> large = {1, 2};
  CHECK(apply(delayed, {large, 2}, Layout::flat, state).saturated == 2);
  CHECK(apply(delayed, {large, 2}, Layout::flat, state).saturated == 0);
  CHECK(once("e4m3_tensor", small).underflow == 0);
  const std::vector<float> tiny = {1e-6F, 2e-6F, -1e-6F};
  // A window of two steps has forgotten the large step after two small ones, 1024 have not.
  for (const auto& [name, remembered] :
       {std::pair("e4m3_delayed_max_L2", 0U), std::pair("e4m3_delayed_max", 3U)}) {
    RecipeState other;
    apply(recipe_of(name), {large, 2}, Layout::flat, other);
    for (int i = 0; i < 2; ++i) apply(recipe_of(name), {tiny, 3}, Layout::flat, other);
    CHECK(apply(recipe_of(name), {tiny, 3}, Layout::flat, other).underflow == remembered);
  }
}

TEST_CASE("recipes: counts of a vector by hand") {
  const std::vector<float> values = {0, 0x1p-25F, 0x1p-24F, 65520, 1, infinity, quiet_nan};
  const RecipeOutcome fp16 = once("fp16", values);
  CHECK(fp16.underflow == 1);
  CHECK(fp16.saturated == 1);
  CHECK(fp16.nonfinite == 1);
  CHECK(fp16.bytes == 14);
  const Signal signal = signal_of(values);
  CHECK(signal.elements == 7);
  CHECK(signal.finite == 5);
  CHECK(signal.nonzero == 4);
  CHECK_FALSE(sqnr_db(signal, fp16).has_value());
  const RecipeOutcome scaled = once("fp16@2^8", {0x1p-25F, 0x1p-34F, 256});
  CHECK(scaled.underflow == 1);
  CHECK(scaled.saturated == 1);
  // x = 1 + 2^-12 comes back as 1: noise 2^-24, a signal of 1 + 2^-11 + 2^-24.
  const std::vector<float> one = {1 + 0x1p-12F};
  const RecipeOutcome outcome = once("fp16", one);
  CHECK(outcome.noise.nearest() == 0x1p-24);
  const auto sqnr = sqnr_db(signal_of(one), outcome);
  REQUIRE(sqnr.has_value());
  CHECK(*sqnr == Approx(20 * std::log10((1 + 0x1p-12) / 0x1p-12)));
  CHECK_FALSE(sqnr_db(signal_of(std::vector<float>{1}), once("fp16", {1})).has_value());
}

TEST_CASE("recipes: sums do not depend on the order of elements") {
  std::vector<float> values = gradients(3000);
  for (const char* name : {"fp16@2^8", "e4m3_tensor", "e5m2_tensor_torchao_pow2", "bf16"}) {
    const RecipeOutcome before = once(name, values);
    std::vector<float> other = values;
    std::shuffle(other.begin(), other.end(), std::mt19937(9));
    CHECK(once(name, other) == before);
  }
  const RecipeOutcome whole = once("bf16", values);
  RecipeOutcome parts = once("bf16", {values.begin(), values.begin() + 1000});
  parts.add(once("bf16", {values.begin() + 1000, values.end()}));
  CHECK(parts == whole);
}

TEST_CASE("recipes: blocks along rows and along the flattened tensor") {
  // Rows of 3 elements: one block each along rows, one for all when flat.
  const std::vector<float> values = {1, 1, 1, 1e-6F, 1e-6F, 1e-6F};
  CHECK(once("mxfp8_e4m3_rceil", values, 3, Layout::flat).underflow == 3);
  CHECK(once("mxfp8_e4m3_rceil", values, 3, Layout::rows).underflow == 0);
  CHECK(once("mxfp8_e4m3_rceil", values, 3, Layout::flat).bytes == 7);
  CHECK(once("mxfp8_e4m3_rceil", values, 3, Layout::rows).bytes == 8);
  // A tile of 128 rows takes both.
  CHECK(once("e4m3_128x128", values, 3, Layout::rows).underflow == 3);
  CHECK(once("e4m3_128x128", values, 3, Layout::rows).bytes == 10);
  std::vector<float> tall(256, 1e-9F);
  tall[0] = 1;
  CHECK(once("e4m3_128x128", tall, 1).underflow == 127);
  CHECK(once("mxfp4_floor", {}, 0).bytes == 0);
}

TEST_CASE("recipes: names are different, every one takes any tensor") {
  RecipeVariants variants;
  variants.histories = {1, 16, 1024};
  std::set<std::string> names;
  const std::vector<float> strange = {0, -0.0F, infinity, quiet_nan, 0x1p-149F, largest_float, 1};
  const std::vector<float> zeros(40, 0);
  for (const Recipe& recipe : known_recipes(variants)) {
    CHECK(names.insert(recipe.name).second);
    RecipeState state;
    CAPTURE(recipe.name);
    const RecipeOutcome outcome = apply(recipe, {strange, 7}, Layout::rows, state);
    CHECK(outcome.underflow <= 3);
    CHECK(outcome.saturated + outcome.nonfinite <= 10);
    const RecipeOutcome nothing = apply(recipe, {zeros, 8}, Layout::flat, state);
    CHECK(nothing.underflow == 0);
    CHECK(nothing.saturated == 0);
    CHECK(nothing.noise.is_zero());
    CHECK(nothing.nonfinite == (recipe.name == "nvfp4_torchao" ? 40U : 0U));
  }
  CHECK(names.count("e4m3_delayed_max_L16") == 1);
  CHECK(names.count("e4m3_delayed_max") == 1);
  CHECK(names.count("fp16") == 1);
  CHECK(names.count("fp16@2^8") == 1);
  CHECK(names.count("mxfp8_e4m3_rceil") == 1);
  CHECK(names.count("e4m3_1x128_floor1e-4") == 1);
}

}  // namespace guardbit::experiments
