// FP64: a chain of IEEE operations, and what IEEE 754 leaves open about it.

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

Rounding rounding_of(const TensorCoreInstruction& row) {
  for (const auto& [qualifier, rounding] : emulator::fp64_roundings)
    if (!qualifier.empty() && row.name.find(qualifier) != std::string_view::npos) return rounding;
  return Rounding::nearest_even;
}

auto rounded(Rounding rounding) {
  return [rounding](AccumulatorSpec& spec) { spec.result = rounding; };
}

/// Ties whose fate depends on what was added before.
void put_chain(Inquiry& x) {
  x.probe().term(0, 1, 1).power(1, -53).power(2, -53).term(3, -1, 1);
  x.probe_value(1);
  for (int k = 0; k < 4; ++k) x.power(k, -53);
  const Rounding rounding = rounding_of(x.row);
  const bool up = rounding == Rounding::upward, down = rounding == Rounding::downward;
  // Upward, each addition moves to the next number; downward, 1 - 1 is -0.
  const std::uint64_t ascending = up ? x.d(two(-51)) : down ? minus : 0;
  const std::uint64_t from_one = up ? one + 4 : one;
  x.outcome("a chain of fused multiply-adds from C, k ascending, each rounded",
            {ascending, from_one}, x.if_spec(rounded(rounding)));
  emulator::Steps descending;
  for (int k = 3; k >= 0; --k)
    descending.list.at(static_cast<std::size_t>(descending.count++)) = emulator::dot_step(
        emulator::fp64_chain(rounding), {4, 1U << k},
        k == 3 ? emulator::Source::c : static_cast<emulator::Source>(2 - k), x.row.d);
  x.outcome("the same, k descending", {x.d(two(-52)), from_one}, x.if_steps(descending));
  x.outcome("one rounding of the exact sum", {x.d(two(-52)), one + 2},
            x.if_spec([](AccumulatorSpec& spec) { spec.summation = emulator::Summation::exact; }));
}

/// The last k, so that no addition follows.
void put_roundings(Inquiry& x) {
  const int k = x.row.k - 1;
  x.probe_value(1).power(k, -60);
  x.probe_value(1).power(k, -60, true);
  x.probe_value(-1).power(k, -60);
  x.probe().power(k, -1074);
  x.probe().power(k, -1200);
  x.probe().power(k, -1200, true);
  x.probe().term(k, two(1023), 2);
  x.probe().term(k, -two(1023), 2);
  x.outcome("to nearest even; subnormal numbers are kept",
            {one, one, one | minus, 1, 0, minus, infinity, infinity | minus},
            x.if_spec(rounded(Rounding::nearest_even)));
  x.outcome("toward zero; subnormal numbers are kept",
            {one, one - 1, (one - 1) | minus, 1, 0, minus, largest, largest | minus},
            x.if_spec(rounded(Rounding::toward_zero)));
  x.outcome("downward; subnormal numbers are kept",
            {one, one - 1, one | minus, 1, 0, minus | 1, largest, infinity | minus},
            x.if_spec(rounded(Rounding::downward)));
  x.outcome("upward; subnormal numbers are kept",
            {one + 1, one, (one - 1) | minus, 1, 1, minus, infinity, largest | minus},
            x.if_spec(rounded(Rounding::upward)));
  x.outcome("to nearest even; subnormal results are flushed",
            {one, one, one | minus, 0, 0, minus, infinity, infinity | minus},
            x.if_spec([](AccumulatorSpec& spec) {
              spec.result = Rounding::nearest_even;
              spec.output = emulator::Subnormals::flush;
            }));
}

/// Where NaNs stand; the payload names the place.
struct Places {
  bool a, b, c;
};
constexpr Places places[] = {{true, false, false}, {false, true, false}, {false, false, true},
                             {true, true, false},  {true, false, true},  {false, true, true},
                             {true, true, true}};

void put_nan_payloads(Inquiry& x) {
  constexpr std::uint64_t quiet = infinity | 0x0008000000000000;
  static constexpr std::array kinds = {quiet, infinity, quiet | minus, infinity | minus};
  for (const std::uint64_t kind : kinds) {
    for (const Places& at : places)
      x.probe(at.c ? kind | 0xC00 : 0)
          .codes(0, at.a ? kind | 0xA00 : one, at.b ? kind | 0xB00 : one);
    x.probe().codes(0, kind | 0xA00, one).codes(1, kind | 0xA01, one);
    x.probe().codes(0, kind | 0xA00, one).codes(1, one, kind | 0xB01);
    x.probe(kind | 0xC00).codes(0, infinity, 0);
  }
  x.probe().codes(0, infinity, 0);
  x.probe().codes(0, infinity, one).codes(1, infinity | minus, one);
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
    x.outcome(std::string("of each fused multiply-add: a quieted copy of ") + order[0] +
                  " if that is NaN, else of " + order[1] + ", else of " + order[2] +
                  "; an invalid operation gives fff8000000000000",
              words, order == "bca" ? std::optional(x.believed) : std::nullopt);
  } while (std::ranges::next_permutation(order).found);
  x.outcome("all ones, sign and payload dropped",
            std::vector<std::uint64_t>(x.probes().size(), ~minus),
            x.if_spec([](AccumulatorSpec& spec) { spec.nan = emulator::NanPolicy::all_ones; }));
}

bool is_plain_double(const TensorCoreInstruction& row) { return is_plain(row) && is_double(row); }

}  // namespace

std::vector<Question> questions_of_double_precision() {
  return {{"Q15", "FP64: in which order are products added?", is_plain_double, put_chain},
          {"Q15b", "FP64: how are results rounded, and subnormal numbers treated?", is_plain_double,
           put_roundings},
          {"Q15c", "FP64: which NaN comes out?", is_plain_double, put_nan_payloads}};
}

}  // namespace guardbit::gpu
