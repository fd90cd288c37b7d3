#include "gpu/model/offset_accumulator.hpp"

#include <algorithm>
#include <cfenv>
#include <cmath>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "emulator/catalogue/instruction_catalogue.hpp"
#include "emulator/model/dot.hpp"
#include "formats/format_catalogue.hpp"
#include "tests/catch.hpp"
#include "tests/emulator/inputs/catalogue_inputs.hpp"

/// The chain of multiply-adds that round down, on which the device's matrix multiplication rests,
/// gives the model's bits. Every step is done here as the device does it, the FP64 tensor core and
/// the sums of weights in plain integers and floats.
namespace guardbit::gpu {
namespace {

using emulator::MatrixInstruction;
using formats::Kind;
using formats::uint128;
using formats::Value;
using tests::Random;

constexpr std::uint64_t fraction52 = (std::uint64_t{1} << 52) - 1;

struct Exact {
  bool negative = false;
  std::uint64_t significand = 0;
  int exponent = 0;
};

Exact exact_of(double x) {
  const auto bits = std::bit_cast<std::uint64_t>(x);
  const int biased = static_cast<int>(bits >> 52) & 0x7FF;
  const std::uint64_t fraction = bits & fraction52;
  return {bits >> 63 != 0, biased == 0 ? fraction : fraction | (fraction52 + 1),
          std::max(biased, 1) - 1075};
}

/// fma(a, b, c) rounded down where c is positive and the result stays in its binade; NaN where it
/// does not.
double multiply_add_down(double a, double b, double c) {
  const Exact x = exact_of(a), y = exact_of(b);
  const uint128 product = uint128{x.significand} * y.significand;
  const int unit = exact_of(c).exponent, down = unit - x.exponent - y.exponent;
  if (product == 0) return c;
  if (down < 0 && formats::leading_bit(product) - down > 51) return std::nan("");
  const uint128 whole = down >= 128 ? 0 : down >= 0 ? product >> down : product << -down;
  if (whole > fraction52) return std::nan("");
  const bool exact = down <= 0 || (down < 128 && whole << down == product);
  auto steps = static_cast<std::int64_t>(whole);
  if (x.negative != y.negative) steps = -steps - (exact ? 0 : 1);
  const double sum = std::bit_cast<double>(std::bit_cast<std::int64_t>(c) + steps);
  return exact_of(sum).exponent == unit && !exact_of(sum).negative ? sum : std::nan("");
}

/// A row of A or column of B of one block, as the packing kernel leaves it.
struct PackedLine {
  std::vector<double> factors;
  std::vector<float> weights;
  std::vector<std::uint16_t> signs;
  int exponent = no_exponent;
  unsigned nonzero = 0, high = 0;
  int low = 0;
  bool special = false;
};

float bf16_value(std::uint16_t code) { return std::bit_cast<float>(std::uint32_t{code} << 16); }

PackedLine pack_line(const TunedInstruction& instruction, bool is_a,
                     const std::vector<std::uint64_t>& codes) {
  const formats::Format stored = is_a ? instruction.a : instruction.b;
  const formats::Format aligned = instruction.step.widened.value_or(stored);
  const ExponentWindow window = exponent_window(instruction.terms);
  std::vector<Value> values;
  PackedLine line;
  for (const std::uint64_t code : codes) {
    values.push_back(emulator::decode_operand(instruction.step, stored, code));
    const Value& v = values.back();
    line.special = line.special || v.kind > Kind::finite;
    if (v.kind != Kind::finite) continue;
    line.exponent = std::max(line.exponent, emulator::aligned_exponent(v, aligned));
    line.nonzero |= 1U << (values.size() - 1);
  }
  for (const Value& v : values) {
    const int relative =
        v.kind == Kind::finite ? emulator::aligned_exponent(v, aligned) - line.exponent : 0;
    line.factors.push_back(double_of(high_word(v), is_a ? 0 : nudge));
    std::uint16_t weight = v.kind > Kind::finite ? special_weight : 0;
    if (v.kind == Kind::finite)
      weight = is_a ? a_weight(window, relative) : b_weight(window, relative);
    line.weights.push_back(bf16_value(weight));
    line.signs.push_back(is_a ? a_signs(v) : b_signs(v));
    const bool low = is_low(window, v, relative);
    line.low += low ? 1 : 0;
    line.high |= low ? 0 : 1U << (line.factors.size() - 1);
  }
  return line;
}

/// S in one of several orders, or with every product but the largest cut away.
float sum_of_weights(const PackedLine& a, const PackedLine& b, int variant) {
  float sum = 0;
  const std::size_t count = a.weights.size();
  for (std::size_t i = 0; i < count; ++i) {
    const std::size_t at = variant == 1 ? count - 1 - i : i;
    const float product = a.weights[at] * b.weights[at];
    sum = variant == 2 && std::isfinite(product) && std::isfinite(sum) &&
                  (product < sum / 64 || sum < product / 64)
              ? std::max(sum, product)
              : sum + product;
  }
  return sum;
}

int negative_products(const PackedLine& a, const PackedLine& b) {
  int count = 0;
  for (std::size_t i = 0; i < a.signs.size(); ++i)
    count += (a.signs[i] & 0xFF) * (b.signs[i] & 0xFF) + (a.signs[i] >> 8) * (b.signs[i] >> 8);
  return count;
}

std::uint64_t code_of(const TunedInstruction& instruction, double c) {
  return formats::encode(instruction.d,
                         formats::decode(formats::fp64, std::bit_cast<std::uint64_t>(c)));
}

double addend_of(const TunedInstruction& instruction, std::uint64_t code) {
  const Value v = formats::decode(instruction.d, code);
  if (v.kind == Kind::zero) return 0;
  if (instruction.accumulated == Accumulated::e8m13 && v.kind == Kind::finite)
    code &= ~std::uint64_t{0x3FF};
  const Value kept = formats::decode(instruction.d, code);
  return kept.kind == Kind::zero ? 0 : std::bit_cast<double>(formats::encode(formats::fp64, kept));
}

struct Tally {
  int chained = 0, modelled = 0, kept = 0;
};

template <Accumulated kind>
double block_of(const TunedInstruction& instruction, const std::vector<std::uint64_t>& a_codes,
                const std::vector<std::uint64_t>& b_codes, double c, int variant, Tally& tally) {
  const PackedLine a = pack_line(instruction, true, a_codes),
                   b = pack_line(instruction, false, b_codes);
  const ExponentWindow window = exponent_window(instruction.terms);
  const OffsetRule rule = offset_rule(instruction);
  const std::uint32_t quotient = quotient_of(window, sum_of_weights(a, b, variant));
  const std::int32_t lines =
      (a.exponent + offset_bias(window, instruction.kept_fraction_bits) + b.exponent) *
      (1 << exponent_shift);
  const Route route =
      route_of<kind>(window, rule, quotient, lines, (a.nonzero & b.nonzero) != 0, c);
  const bool lines_are_safe = !instruction.any_exponents ||
                              (std::min(a.exponent, b.exponent) >= lowest_line_exponent(window) &&
                               std::max(a.exponent, b.exponent) <= highest_line_exponent);
  // What the kernel takes without asking: then the route must be the chain.
  if ((a.low + b.low < instruction.terms || (a.high & b.high) != 0) && !a.special && !b.special &&
      lines_are_safe && (high_of(c) & 0x7FFFFFFF) < first_excluded<kind>)
    REQUIRE(route == Route::chain);
  switch (route) {
    case Route::keep: ++tally.kept; return c;
    case Route::model: {
      ++tally.modelled;
      const auto code = [](const auto& codes) {
        return [&codes](int i) { return codes[static_cast<std::size_t>(i)]; };
      };
      return addend_of(instruction, model_block(instruction, instruction.terms, code(a_codes),
                                                code(b_codes), code_of(instruction, c)));
    }
    case Route::chain: break;
  }
  ++tally.chained;
  const std::uint32_t high =
      offset_high<kind>(rule, high_of(c), static_cast<std::int32_t>(quotient) + lines);
  const auto negative = static_cast<std::uint32_t>(negative_products(a, b));
  double sum =
      multiply_add_down(c, addend_nudge, double_of(high, offset_low(high_of(c), negative)));
  for (std::size_t i = 0; i < a.factors.size(); ++i)
    sum = multiply_add_down(a.factors[i], b.factors[i], sum);
  REQUIRE(!std::isnan(sum));
  const double d = rounded_sum<kind>(sum - double_of(high, 0));
  if (kind == Accumulated::fp16 && std::fabs(d) >= 65536) return std::copysign(INFINITY, d);
  return d;
}

double block_of(const TunedInstruction& instruction, const std::vector<std::uint64_t>& a,
                const std::vector<std::uint64_t>& b, double c, int variant, Tally& tally) {
  switch (instruction.accumulated) {
    case Accumulated::fp32:
      return block_of<Accumulated::fp32>(instruction, a, b, c, variant, tally);
    case Accumulated::e8m13:
      return block_of<Accumulated::e8m13>(instruction, a, b, c, variant, tally);
    case Accumulated::fp16:
      return block_of<Accumulated::fp16>(instruction, a, b, c, variant, tally);
  }
  return 0;
}

/// D of one execution.
std::uint64_t execution_of(const MatrixInstruction& instruction, const TunedInstruction& tuned,
                           const tests::DotInputs& x, int variant, Tally& tally) {
  double c = tuned.composed ? 0 : addend_of(tuned, x.c);
  for (std::int64_t block = 0; block < tuned.execution_k / tuned.terms; ++block) {
    std::vector<std::uint64_t> a, b;
    for (int i = 0; i < tuned.terms; ++i) {
      const auto k = static_cast<std::size_t>(source_k(tuned, block, i));
      a.push_back(x.a[k]);
      b.push_back(x.b[k]);
    }
    c = block_of(tuned, a, b, c, variant, tally);
  }
  const bool nan = std::isnan(c);
  const std::uint64_t code = nan ? formats::all_ones_nan_code(tuned.d) : code_of(tuned, c);
  if (!tuned.composed) return code;
  const auto exactly = [&](std::uint64_t y) {
    return formats::exactly(formats::decode(tuned.d, y));
  };
  return emulator::encode_result(instruction.steps.list[2].spec, tuned.d,
                                 formats::add(exactly(x.c), exactly(code)));
}

/// One instruction of each kind that the tuned kernel tells apart.
std::vector<MatrixInstruction> distinct_instructions() {
  std::vector<MatrixInstruction> instructions;
  std::set<std::tuple<int, int, int, bool, int, int, std::string>> seen;
  for (const MatrixInstruction& instruction : emulator::catalogue()) {
    const auto t = tuned_instruction(instruction);
    if (!t) continue;
    const std::string types = formats::name_of(instruction.a) + formats::name_of(instruction.b);
    if (seen.emplace(t->terms, t->execution_k, static_cast<int>(t->accumulated), t->composed,
                     t->kept_fraction_bits, t->zero_exponent, types)
            .second)
      instructions.push_back(instruction);
  }
  return instructions;
}

}  // namespace

TEST_CASE("a nudged product is no integer and has its floor, at every alignment") {
  Random random(1);
  bool holds = true;
  for (int i = 0; i < 400000; ++i) {
    // Operands of up to 12 bits, often at the ends of their range; normalised to 53 bits.
    const int bits = random.between(1, 12);
    const auto draw = [&] {
      const std::uint64_t all = (std::uint64_t{1} << bits) - 1;
      return random.one_in(3)   ? all
             : random.one_in(3) ? std::uint64_t{1} << (bits - 1)
                                : (random.bits() & all) | 1;
    };
    const std::uint64_t sa = draw(), sb = draw();
    const int top = formats::leading_bit(sb);
    const std::uint64_t nudged = (sb << (52 - top)) | nudge;
    const int kept = random.between(0, 27);
    // p = sa * sb / 2^(2 (bits - 1)) * 2^(F - distance) grid steps; below 2^(F + 2).
    const int distance = random.between(0, 40);
    const int down = 2 * (bits - 1) - kept + distance;
    const uint128 product = uint128{sa} * sb;
    const uint128 floor = down >= 0 ? product >> down : product << -down;
    const int nudged_down = down + 52 - top;
    const uint128 with_nudge = uint128{sa} * nudged;
    holds = holds && nudged_down > 0 && with_nudge >> nudged_down == floor &&
            (with_nudge & ((uint128{1} << nudged_down) - 1)) != 0;
  }
  CHECK(holds);
}

TEST_CASE("this test's multiply-add that rounds down is the machine's") {
  Random random(2);
  bool holds = true;
  for (int i = 0; i < 20000; ++i) {
    const double offset = std::ldexp(1.5, random.between(-100, 100));
    const int unit = exact_of(offset).exponent;
    volatile double a =
        std::ldexp(static_cast<double>(random.below(4096)), random.between(-60, 20));
    volatile double b =
        std::ldexp(static_cast<double>(random.bits() >> 11), unit - random.between(20, 60)) *
        (random.one_in(2) ? 1 : -1);
    volatile double c =
        std::bit_cast<double>(std::bit_cast<std::uint64_t>(offset) + random.below(1000));
    const double mine = multiply_add_down(a, b, c);
    if (std::isnan(mine)) continue;
    for (const int direction : {FE_DOWNWARD, FE_TOWARDZERO}) {
      std::fesetround(direction);
      volatile double machine = std::fma(a, b, c);
      std::fesetround(FE_TONEAREST);
      holds = holds && (machine == mine || (direction == FE_TOWARDZERO && mine < 0));
    }
  }
  CHECK(holds);
}

TEST_CASE("the quotient of a sum of weights is the largest exponent") {
  for (const int terms : {4, 8, 16, 32}) {
    const ExponentWindow w = exponent_window(terms);
    CAPTURE(terms);
    for (int relative = 0; relative >= -w.depth; --relative) {
      for (const int a_part : {0, relative / 2, relative}) {
        const float one =
            bf16_value(a_weight(w, a_part)) * bf16_value(b_weight(w, relative - a_part));
        const float below = relative > -w.depth ? std::ldexp(one, -w.base_bits) : 0;
        for (const int count : {1, 2, terms - 1, terms}) {
          const float sum =
              one * static_cast<float>(count) + below * static_cast<float>(terms - count);
          REQUIRE(std::isfinite(sum));
          const std::uint32_t quotient = quotient_of(w, sum);
          REQUIRE(static_cast<int>(quotient >> exponent_shift) == w.top + relative);
          REQUIRE(is_exact_quotient(w, quotient));
          REQUIRE(!is_special_quotient(w, quotient));
        }
      }
    }
    CHECK(is_special_quotient(w, quotient_of(w, INFINITY)));
    CHECK(is_special_quotient(w, quotient_of(w, std::nanf(""))));
    CHECK(!is_exact_quotient(w, quotient_of(w, 0)));
  }
}

TEST_CASE(
    "blocks on an offset accumulator give the model's bits, on every instruction that takes them") {
  const std::vector<MatrixInstruction> instructions = distinct_instructions();
  REQUIRE(instructions.size() > 30);
  for (const MatrixInstruction& instruction : instructions) {
    const TunedInstruction tuned = *tuned_instruction(instruction);
    for (const tests::InputFamily family : tests::input_families(instruction)) {
      Tally tally;
      int wrong = 0;
      constexpr std::uint64_t cases = 40;
      for (std::uint64_t i = 0; i < cases; ++i) {
        const tests::DotInputs x = tests::dot_inputs(instruction, family, 7, i);
        const std::uint64_t expected = emulator::dot(instruction, x.view());
        const std::uint64_t got =
            execution_of(instruction, tuned, x, static_cast<int>(i % 3), tally);
        wrong += got != expected ? 1 : 0;
      }
      INFO(std::string_view(instruction.name)
           << " on " << instruction.arch << ", " << name_of(family) << ": " << tally.chained
           << " blocks chained, " << tally.modelled << " by the model");
      CHECK(wrong == 0);
      if (family == tests::InputFamily::narrow_exponents) CHECK(tally.modelled == 0);
    }
  }
}

}  // namespace guardbit::gpu
