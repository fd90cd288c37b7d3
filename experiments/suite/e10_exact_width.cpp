#include <array>
#include <cmath>

#include "emulator/gemm/scalar.hpp"
#include "emulator/model/dot.hpp"
#include "experiments/harness/run.hpp"
#include "experiments/suite/suite.hpp"
#include "formats/support/parallel.hpp"

namespace guardbit::experiments {

namespace e10 {
namespace {

constexpr std::size_t terms = 32;

/// A unit that sums 32 products of E4M3 with `width` bits below the largest exponent, and whose
/// result loses nothing: 41 bits fit FP64.
emulator::MatrixInstruction unit_of(int width) {
  emulator::MatrixInstruction instruction;
  instruction.a = instruction.b = formats::e4m3;
  instruction.c = instruction.d = formats::fp64;
  instruction.shape = {1, 1, static_cast<int>(terms)};
  emulator::AccumulatorSpec spec;
  spec.terms = static_cast<int>(terms);
  spec.kept_fraction_bits = width;
  spec.min_exponent = -2000;  // zeros never decide the grid
  instruction.steps = {{.spec = spec, .result = formats::fp64}};
  return instruction;
}

using Codes = std::array<std::uint64_t, terms>;

double sum_by(const emulator::MatrixInstruction& instruction, const Codes& a, const Codes& b) {
  return emulator::scalar::decoded(formats::fp64, emulator::dot(instruction, {a, b, 0}));
}

/// Exact: every product is a multiple of 2^-18 below 2^18.
double exact_sum(const Codes& a, const Codes& b) {
  double sum = 0;
  for (std::size_t i = 0; i < terms; ++i)
    sum += emulator::scalar::decoded(formats::e4m3, a[i]) *
           emulator::scalar::decoded(formats::e4m3, b[i]);
  return sum;
}

/// The largest products beside the smallest one: what needs the most bits.
struct Widest {
  Codes a{}, b{};
  Widest() {
    a.fill(formats::max_finite_code(formats::e4m3));
    b = a;
    a[terms - 1] = b[terms - 1] = 1;  // the least subnormal number
  }
};

int bits_of(double x) {
  int exponent = 0;
  auto significand = static_cast<std::uint64_t>(std::ldexp(std::frexp(std::abs(x), &exponent), 53));
  int bits = 53;
  while (significand != 0 && significand % 2 == 0) {
    significand /= 2;
    --bits;
  }
  return bits;
}

/// Share of random dot products that the width does not sum exactly, in percent.
double inexact_share(Run& run, int width, const std::string& numbers, std::int64_t samples) {
  const emulator::MatrixInstruction instruction = unit_of(width);
  const Draws draws = run.draws(numbers);
  std::vector<std::uint8_t> inexact(static_cast<std::size_t>(samples));
  emulator::CodeMatrix a, b;
  if (numbers == "codes") {
    a = b = emulator::make_matrix(formats::e4m3, 1, samples, terms);
    for (std::int64_t i = 0; i < a.size(); ++i) {
      // Finite codes: 127 magnitudes of either sign.
      const std::uint64_t word = draws.word(static_cast<std::uint64_t>(i));
      a.set(i, (word & 0x80U) | (word >> 8) % 127);
      b.set(i, (word >> 32 & 0x80U) | (word >> 40) % 127);
    }
  } else {
    a = run.draws(numbers + " A").matrix(formats::e4m3, samples, terms, distribution_of(numbers));
    b = run.draws(numbers + " B").matrix(formats::e4m3, samples, terms, distribution_of(numbers));
  }
  run.uses(a);
  run.uses(b);
  formats::parallel_for(static_cast<std::size_t>(samples), 256, run.threads(),
                        [&](std::size_t begin, std::size_t end) {
                          for (std::size_t t = begin; t < end; ++t) {
                            Codes x{}, y{};
                            for (std::size_t i = 0; i < terms; ++i) {
                              x[i] = a[static_cast<std::int64_t>(t * terms + i)];
                              y[i] = b[static_cast<std::int64_t>(t * terms + i)];
                            }
                            inexact[t] = sum_by(instruction, x, y) != exact_sum(x, y) ? 1 : 0;
                          }
                        });
  double count = 0;
  for (const std::uint8_t x : inexact) count += x;
  return 100 * count / static_cast<double>(samples);
}

Outcome run(Run& run) {
  const Settings& s = run.settings();
  const auto widths = s.integers("width");
  const auto& distributions = s.words("numbers");
  run.announce(widths.size() * distributions.size());
  const Widest widest;
  int needed = 0;
  while (sum_by(unit_of(needed), widest.a, widest.b) != exact_sum(widest.a, widest.b)) ++needed;
  Outcome outcome;
  outcome.findings = {
      {"bits below the largest exponent that every sum of 32 needs", "bits",
       static_cast<double>(needed),
       Reference{.value = 34,
                 .source = "DeepSeek-V3, arXiv 2412.19437, 3.3.2: 34 bits; and 2 * 8 + 2 * 9",
                 .certainty = Certainty::read}},
      {"magnitude bits of the widest sum", "bits",
       static_cast<double>(bits_of(exact_sum(widest.a, widest.b))),
       Reference{.value = 41,
                 .source = "from 2^-18 up to 31 * 448^2 < 2^23",
                 .certainty = Certainty::derived}}};
  outcome.figure = {"E10: sums of 32 E4M3 products that are not exact",
                    "bits kept below the largest exponent of the sum",
                    "share of sums that lose something (%)"};
  for (const std::string& numbers : distributions) {
    Curve curve{numbers};
    int knee = 0;
    for (const std::int64_t width : widths) {
      const auto& share = run.point(numbers + " width=" + std::to_string(width), [&] {
        return std::vector<double>{
            inexact_share(run, static_cast<int>(width), numbers, s.integer("samples"))};
      });
      curve.add(static_cast<double>(width), share[0]);
      if (share[0] != 0) knee = static_cast<int>(width);
    }
    outcome.figure.curves.push_back(curve);
    outcome.findings.push_back({numbers + ": largest width of those tried that loses something",
                                "bits", static_cast<double>(knee),
                                Reference{.value = 33,
                                          .source = "the width above",
                                          .certainty = Certainty::derived,
                                          .relation = Reference::Relation::at_most}});
  }
  outcome.notes.emplace_back(
      "34 bits below the largest exponent reach from the largest product's exponent, 2^16, to the last bit of the smallest, 2^-18. "
      "Counted from its top, the widest sum takes 41 bits: "
      "the products are not normalised (1 more), and 32 of them carry (5 more), into an accumulator that a cut at 34 leaves whole.");
  return outcome;
}

}  // namespace
}  // namespace e10

Experiment exact_width() {
  using namespace e10;
  using Kind = Parameter::Kind;
  return {
      .name = "E10",
      .slug = "exact_width",
      .question = "Why are 34 bits said to be needed to accumulate FP8 products exactly?",
      .method =
          "Units that sum 32 products of E4M3 like a tensor core, but with a width of our choice, "
          "sum the operands that need most (31 times 448 * 448 and the smallest product) and random ones.",
      .expected =
          "DeepSeek-V3 (arXiv 2412.19437, 3.3.2, read) names 34 bits; the exact sum has up to 41 magnitude bits (derived).",
      .parameters = {{"width", "bits kept below the largest exponent", "8:40:1", "10:36:2",
                      Kind::integer, true, 1, 48},
                     {"samples", "random sums for each width", "20000", "1000", Kind::integer,
                      false, 10, 10000000},
                     {"numbers", "uniform over finite codes, or rounded from a distribution",
                      "codes,normal,uniform", "", Kind::word, true, 0, 0,
                      "codes,normal,uniform,laplace,outliers,log_uniform"}},
      .run = run,
  };
}

}  // namespace guardbit::experiments
