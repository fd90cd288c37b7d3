// Questions about FP64 instructions: the order of additions, their rounding, and the choices that
// IEEE 754 leaves open.

#include <algorithm>
#include <array>
#include <string>

#include "emulator/catalogue/compositions.hpp"
#include "formats/format_catalogue.hpp"
#include "gpu/questions/questions.hpp"

namespace guardbit::gpu {

namespace {

using emulator::AccumulatorSpec;
using formats::Rounding;

constexpr std::uint64_t minus = std::uint64_t{1} << 63, one = 0x3FF0000000000000,
                        infinity = 0x7FF0000000000000, largest = infinity - 1;

Rounding rounding_of(const TensorCoreInstruction& instruction) {
  for (const auto& [qualifier, rounding] : emulator::fp64_roundings)
    if (!qualifier.empty() && instruction.name.find(qualifier) != std::string_view::npos)
      return rounding;
  return Rounding::nearest_even;
}

auto rounded(Rounding rounding) {
  return [rounding](AccumulatorSpec& spec) { spec.result = rounding; };
}

/// Products of half an ulp, whose rounding depends on the sum so far.
void design_chain(HypothesisTest& x) {
  x.trial().term(0, 1, 1).power(1, -53).power(2, -53).term(3, -1, 1);
  x.trial_value(1);
  for (int k = 0; k < 4; ++k) x.power(k, -53);
  const Rounding rounding = rounding_of(x.instruction);
  const bool up = rounding == Rounding::upward, down = rounding == Rounding::downward;
  // Upward, each addition moves to the next number; downward, 1 - 1 is -0.
  const std::uint64_t ascending = up ? x.d(two(-51)) : down ? minus : 0;
  const std::uint64_t from_one = up ? one + 4 : one;
  x.add_hypothesis("a chain of fused multiply-adds from C, k ascending, each rounded",
                   {ascending, from_one}, x.with_spec(rounded(rounding)));
  emulator::Steps descending;
  for (int k = 3; k >= 0; --k)
    descending.list.at(static_cast<std::size_t>(descending.count++)) = emulator::dot_step(
        emulator::fp64_chain(rounding), {4, 1U << k},
        k == 3 ? emulator::Source::c : static_cast<emulator::Source>(2 - k), x.instruction.d);
  x.add_hypothesis("the same, k descending", {x.d(two(-52)), from_one}, x.with_steps(descending));
  x.add_hypothesis(
      "one rounding of the exact sum", {x.d(two(-52)), one + 2},
      x.with_spec([](AccumulatorSpec& spec) { spec.summation = emulator::Summation::exact; }));
}

/// The products stand at the last k, so that no addition follows.
void design_roundings(HypothesisTest& x) {
  const int k = x.instruction.k - 1;
  x.trial_value(1).power(k, -60);
  x.trial_value(1).power(k, -60, true);
  x.trial_value(-1).power(k, -60);
  x.trial().power(k, -1074);
  x.trial().power(k, -1200);
  x.trial().power(k, -1200, true);
  x.trial().term(k, two(1023), 2);
  x.trial().term(k, -two(1023), 2);
  x.add_hypothesis("to nearest even; subnormal numbers are kept",
                   {one, one, one | minus, 1, 0, minus, infinity, infinity | minus},
                   x.with_spec(rounded(Rounding::nearest_even)));
  x.add_hypothesis("toward zero; subnormal numbers are kept",
                   {one, one - 1, (one - 1) | minus, 1, 0, minus, largest, largest | minus},
                   x.with_spec(rounded(Rounding::toward_zero)));
  x.add_hypothesis("downward; subnormal numbers are kept",
                   {one, one - 1, one | minus, 1, 0, minus | 1, largest, infinity | minus},
                   x.with_spec(rounded(Rounding::downward)));
  x.add_hypothesis("upward; subnormal numbers are kept",
                   {one + 1, one, (one - 1) | minus, 1, 1, minus, infinity, largest | minus},
                   x.with_spec(rounded(Rounding::upward)));
  x.add_hypothesis("to nearest even; subnormal results are flushed",
                   {one, one, one | minus, 0, 0, minus, infinity, infinity | minus},
                   x.with_spec([](AccumulatorSpec& spec) {
                     spec.result = Rounding::nearest_even;
                     spec.output = emulator::Subnormals::flush;
                   }));
}

/// Operands that are NaN. The payload tells which operand it was (0xA00, 0xB00, 0xC00).
struct Places {
  bool a, b, c;
};
constexpr Places places[] = {{true, false, false}, {false, true, false}, {false, false, true},
                             {true, true, false},  {true, false, true},  {false, true, true},
                             {true, true, true}};

void design_nan_payloads(HypothesisTest& x) {
  constexpr std::uint64_t quiet = infinity | 0x0008000000000000;
  static constexpr std::array kinds = {quiet, infinity, quiet | minus, infinity | minus};
  for (const std::uint64_t kind : kinds) {
    for (const Places& at : places)
      x.trial(at.c ? kind | 0xC00 : 0)
          .codes(0, at.a ? kind | 0xA00 : one, at.b ? kind | 0xB00 : one);
    x.trial().codes(0, kind | 0xA00, one).codes(1, kind | 0xA01, one);
    x.trial().codes(0, kind | 0xA00, one).codes(1, one, kind | 0xB01);
    x.trial(kind | 0xC00).codes(0, infinity, 0);
  }
  x.trial().codes(0, infinity, 0);
  x.trial().codes(0, infinity, one).codes(1, infinity | minus, one);
  constexpr std::uint64_t invalid = quiet | minus;
  std::string order = "abc";
  do {
    // The quieted NaN that one multiply-add returns when it prefers its operands in this order.
    const auto choose = [&order](std::uint64_t a, std::uint64_t b, std::uint64_t c) {
      for (const char operand : order)
        if (const std::uint64_t word = operand == 'a' ? a : operand == 'b' ? b : c; word != 0)
          return word | quiet;
      return invalid;
    };
    std::vector<std::uint64_t> words;
    for (const std::uint64_t kind : kinds) {
      for (const Places& at : places)
        words.push_back(
            choose(at.a ? kind | 0xA00 : 0, at.b ? kind | 0xB00 : 0, at.c ? kind | 0xC00 : 0));
      const std::uint64_t first = choose(kind | 0xA00, 0, 0);
      words.push_back(choose(kind | 0xA01, 0, first));
      words.push_back(choose(0, kind | 0xB01, first));
      words.push_back(choose(0, 0, kind | 0xC00));
    }
    words.insert(words.end(), 2, invalid);
    x.add_hypothesis(std::string("of each fused multiply-add: a quieted copy of ") + order[0] +
                         " if that is NaN, else of " + order[1] + ", else of " + order[2] +
                         "; an invalid operation gives fff8000000000000",
                     words, order == "bca" ? std::optional(x.assumed) : std::nullopt);
  } while (std::ranges::next_permutation(order).found);
  x.add_hypothesis(
      "all ones, sign and payload dropped", std::vector<std::uint64_t>(x.trials().size(), ~minus),
      x.with_spec([](AccumulatorSpec& spec) { spec.nan = emulator::NanPolicy::all_ones; }));
}

bool is_plain_double(const TensorCoreInstruction& instruction) {
  return is_plain(instruction) && is_double(instruction);
}

}  // namespace

std::vector<Question> questions_of_double_precision() {
  return {{"Q15", "FP64: in which order are products added?", is_plain_double, design_chain},
          {"Q15b", "FP64: how are results rounded, and subnormal numbers treated?", is_plain_double,
           design_roundings},
          {"Q15c", "FP64: which NaN comes out?", is_plain_double, design_nan_payloads}};
}

}  // namespace guardbit::gpu
