#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "emulator/catalogue/instruction_catalogue.hpp"
#include "emulator/gemm/gemm.hpp"
#include "emulator/gemm/scales.hpp"
#include "emulator/plan_search/plan_evidence.hpp"
#include "formats/support/error.hpp"
#include "tests/catch.hpp"
#include "tests/emulator/gemm/gemm_inputs.hpp"
#include "tests/emulator/gemm/gemm_owners.hpp"
#include "tests/emulator/inputs/oracle_rules.hpp"
#include "tests/oracle/arithmetic.hpp"

// Scales of operands, by the tensor, the row and blocks of K, in the epilogue and in promoted sums.
namespace guardbit::tests {
namespace {

using emulator::CodeMatrix;
using emulator::Epilogue;
using emulator::GemmPlan;
using emulator::GemmProblem;
using emulator::Promotion;
using formats::fp32;
using oracle::Number;

Number number_of(const Format& f, std::uint64_t code) {
  return oracle::decode(oracle_format(f), code);
}
Number number_of(double x) { return oracle::decode(oracle::fp64, std::bit_cast<std::uint64_t>(x)); }

void take_scale_k(GemmProblem& x) {
  x.scale_k = emulator::scale_k_of({x.a, x.scale_a, "A"}, {x.b, x.scale_b, "B"});
}

/// Arithmetic whose results are numbers of one format.
struct In {
  oracle::FormatParameters f;
  explicit In(const Format& format) : f(oracle_format(format)) {}
  Number rounded(const Number& x) const {
    return oracle::decode(f, oracle::encode(f, x, oracle::nearest_even));
  }
  Number plus(const Number& x, const Number& y) const {
    return oracle::decode(f, oracle::add(f, x, y, oracle::nearest_even));
  }
  Number times(const Number& x, const Number& y) const {
    return oracle::decode(f, oracle::mul(f, x, y, oracle::nearest_even));
  }
  Number fma(const Number& x, const Number& y, const Number& z) const {
    return oracle::decode(f, oracle::fma(f, x, y, z, oracle::nearest_even));
  }
};

/// A problem, and how many elements share each of its scales.
struct Scaled {
  GemmProblem x;
  std::int64_t rows_each = 1, columns_each = 1, a_k_each = 1, b_k_each = 1;

  Number of_a(std::int64_t i, std::int64_t k) const {
    if (x.scale_a.empty()) return oracle::dyadic(1);
    return number_of(x.scale_a.format, x.scale_a(0, i / rows_each, k / a_k_each));
  }
  Number of_b(std::int64_t k, std::int64_t j) const {
    if (x.scale_b.empty()) return oracle::dyadic(1);
    return number_of(x.scale_b.format, x.scale_b(0, k / b_k_each, j / columns_each));
  }
};

/// What a plan gives, in exact arithmetic.
class ScalesJudge {
 public:
  ScalesJudge(const GemmPlan& plan, const Scaled& scaled)
      : plan_(plan), scaled_(scaled), x_(scaled.x), compute_(plan.epilogue.compute) {
    if (plan.unit.arch == "simt") return;
    row_ = emulator::require_instruction(plan.unit.arch, plan.unit.instruction, "judge");
    judge_ = judge_of(row_);
  }

  bool promotes_scales() const {
    return plan_.promotion.interval != 0 && plan_.promotion.adder != Promotion::Adder::add;
  }

  /// A part of the error of a plan that is refused; nothing if it is not.
  std::optional<std::string> refusal() const {
    if (promotes_scales() && plan_.epilogue.scales != Epilogue::Scales::joint)
      return "is not read: scales enter by promote=";
    if (x_.scale_k == 0) return {};
    if (!promotes_scales()) return "enter by promote alone, with an adder that scales";
    for (const auto& [part, ks] : parts())
      for (const Ks& slice : slices_of(plan_, ks))
        for (const Ks& interval : intervals_of(plan_, slice))
          for (const std::int64_t k : interval)
            if (k / x_.scale_k != interval.front() / x_.scale_k) return "whose scales differ";
    return {};
  }

  std::uint64_t output(std::int64_t i, std::int64_t j) const {
    std::vector<Number> sums;
    for (const auto& [part, ks] : parts()) {
      std::vector<Number> of_slices;
      for (const Ks& slice : slices_of(plan_, ks))
        of_slices.push_back(accumulator(i, j, slice, sums.empty() && of_slices.empty()));
      sums.push_back(added(of_slices));
    }
    if (plan_.split.order != emulator::SumOrder::in_place || sums.size() == 1)
      return stored(ended(i, j, added(sums), c(i, j), bias(j), plan_.epilogue.beta), true);
    const bool bias_last = c(i, j).has_value() || begins();
    std::uint64_t d = stored(
        ended(i, j, sums[0], c(i, j), bias_last ? std::nullopt : bias(j), plan_.epilogue.beta),
        false);
    for (std::size_t s = 1; s < sums.size(); ++s) {
      const bool is_last = s + 1 == sums.size();
      d = stored(ended(i, j, sums[s], number_of(plan_.epilogue.output, d),
                       bias_last && is_last ? bias(j) : std::nullopt, 1),
                 is_last);
    }
    return d;
  }

 private:
  bool begins() const { return plan_.epilogue.addition == Epilogue::Addition::initial; }
  std::optional<Number> c(std::int64_t i, std::int64_t j) const {
    if (x_.c.empty() || plan_.epilogue.beta == 0 || begins()) return {};
    return compute_.rounded(number_of(x_.c.format, x_.c(0, i, j)));
  }
  std::optional<Number> bias(std::int64_t j) const {
    if (x_.bias.empty() || (begins() && x_.c.empty())) return {};
    return compute_.rounded(number_of(x_.bias.format, x_.bias(0, 0, j)));
  }

  std::map<std::int64_t, Ks> parts() const {
    std::map<std::int64_t, Ks> result;
    for (std::int64_t k = 0; k < x_.k(); ++k) result[owner(plan_.split, k, x_.k())].push_back(k);
    return result;
  }

  /// What the first chain begins with.
  Number first_sum(std::int64_t i, std::int64_t j) const {
    if (!begins()) return oracle::zero();
    const Format f = plan_.unit.arch == "simt" ? fp32 : row_.c;
    if (x_.c.empty()) return In(f).rounded(number_of(x_.bias.format, x_.bias(0, 0, j)));
    const Number number = number_of(x_.c.format, x_.c(0, i, j));
    const double beta = plan_.epilogue.beta;
    if (beta == 0 || beta == 1) return In(f).rounded(number);
    return In(f).rounded(compute_.times(compute_.rounded(number_of(beta)), number));
  }

  Number accumulator(std::int64_t i, std::int64_t j, const Ks& ks, bool is_first) const {
    const Number first = is_first ? first_sum(i, j) : oracle::zero();
    if (plan_.promotion.interval == 0) return chain(i, j, ks, first);
    const In f(fp32);
    Number sum = oracle::zero();
    bool begun = false;
    for (const Ks& interval : intervals_of(plan_, ks)) {
      const Number p = f.rounded(chain(i, j, interval, begun ? oracle::zero() : first));
      begun = true;
      const Number a = f.rounded(scaled_.of_a(i, interval.front())),
                   b = f.rounded(scaled_.of_b(interval.front(), j));
      switch (plan_.promotion.adder) {
        case Promotion::Adder::add: sum = f.plus(sum, p); break;
        case Promotion::Adder::scaled_fma: sum = f.fma(p, f.times(a, b), sum); break;
        case Promotion::Adder::scale_a_fma: sum = f.fma(f.times(p, a), b, sum); break;
        case Promotion::Adder::scale_b_fma: sum = f.fma(f.times(p, b), a, sum); break;
        case Promotion::Adder::scaled_add: sum = f.plus(sum, f.times(p, f.times(a, b))); break;
      }
    }
    return sum;
  }

  Number chain(std::int64_t i, std::int64_t j, const Ks& ks, const Number& first) const {
    if (plan_.unit.arch == "simt") {
      const In f(fp32);
      Number sum = first;
      for (const std::int64_t k : ks) {
        Number a = f.rounded(number_of(x_.a.format, x_.a(0, i, k))),
               b = f.rounded(number_of(x_.b.format, x_.b(0, k, j)));
        const Number alpha = f.rounded(number_of(plan_.epilogue.alpha));
        if (plan_.epilogue.alpha_on == Epilogue::AlphaOn::a) a = f.times(alpha, a);
        if (plan_.epilogue.alpha_on == Epilogue::AlphaOn::b) b = f.times(alpha, b);
        sum = f.fma(a, b, sum);
      }
      return sum;
    }
    const auto most = static_cast<std::size_t>(row_.shape.k);
    std::uint64_t sum = oracle::encode(oracle_format(row_.c), first, oracle::nearest_even);
    for (std::size_t begin = 0; begin < ks.size();) {
      DotInputs inputs;
      for (std::size_t at = begin; at < ks.size() && at < begin + most; ++at) {
        if (at != begin && ks[at] != ks[at - 1] + 1) break;
        inputs.a.push_back(x_.a(0, i, ks[at]));
        inputs.b.push_back(x_.b(0, ks[at], j));
      }
      begin += inputs.a.size();
      inputs.a.resize(most), inputs.b.resize(most);
      inputs.c = sum;
      sum = judge_.answer(inputs);
    }
    return number_of(row_.d, sum);
  }

  Number added(const std::vector<Number>& sums) const {
    Number total = sums.front();
    for (std::size_t s = 1; s < sums.size(); ++s) total = compute_.plus(total, sums[s]);
    return total;
  }

  Number ended(std::int64_t i, std::int64_t j, Number x, const std::optional<Number>& of_c,
               const std::optional<Number>& of_bias, double beta) const {
    const Epilogue& e = plan_.epilogue;
    const In& f = compute_;
    const bool has_alpha = !begins() && !e.scales_operand();
    const Number alpha = has_alpha ? f.rounded(number_of(e.alpha)) : oracle::dyadic(1);
    if (has_alpha && e.alpha_on == Epilogue::AlphaOn::d) x = In(e.output).rounded(x);
    Number factor = alpha;
    if (!promotes_scales() && !(x_.scale_a.empty() && x_.scale_b.empty())) {
      const Number a = f.rounded(scaled_.of_a(i, 0)), b = f.rounded(scaled_.of_b(0, j));
      switch (e.scales) {
        case Epilogue::Scales::joint: factor = f.times(alpha, f.times(a, b)); break;
        case Epilogue::Scales::a_then_b: x = f.times(f.times(x, a), b); break;
        case Epilogue::Scales::b_then_a: x = f.times(f.times(x, b), a); break;
      }
    }
    if (!of_c && !of_bias) return f.times(factor, x);
    const Number weight = of_c ? f.rounded(number_of(beta)) : oracle::dyadic(1);
    const Number addend = of_c ? *of_c : *of_bias;
    switch (e.addition) {
      case Epilogue::Addition::fma_product: x = f.fma(factor, x, f.times(weight, addend)); break;
      case Epilogue::Addition::fma_addend: x = f.fma(weight, addend, f.times(factor, x)); break;
      case Epilogue::Addition::separate:
      case Epilogue::Addition::initial:
        x = f.plus(f.times(factor, x), f.times(weight, addend));
        break;
      case Epilogue::Addition::rounded:
        x = f.plus(In(e.output).rounded(f.times(factor, x)), f.times(weight, addend));
        break;
    }
    return of_c && of_bias ? f.plus(x, *of_bias) : x;
  }

  std::uint64_t stored(Number x, bool is_last) const {
    const Epilogue& e = plan_.epilogue;
    if (is_last && e.via) x = In(*e.via).rounded(x);
    const bool is_negative = !x.is_nan() && (x.negative || x.is_zero());
    if (is_last && e.activation == emulator::Activation::relu && is_negative) x = oracle::zero();
    return oracle::encode(oracle_format(e.output), x, oracle::nearest_even);
  }

  const GemmPlan& plan_;
  const Scaled& scaled_;
  const GemmProblem& x_;
  In compute_;
  emulator::MatrixInstruction row_;
  Judge judge_;
};

struct ScaledUnit {
  emulator::GemmUnit unit;
  Format operands;
};

const std::array<ScaledUnit, 6> scaled_units = {
    {{{"simt", "fma.fp32"}, fp32},
     {{"simt", "fma.fp32"}, formats::bf16},
     {{"sm_90", "wgmma.mma_async.sync.aligned.m64nNk32.f32.e4m3.e4m3"}, formats::e4m3},
     {{"sm_89", "mma.sync.aligned.m16n8k32.row.col.f32.e4m3.e4m3.f32"}, formats::e4m3},
     {{"sm_90", "wgmma.mma_async.sync.aligned.m64nNk16.f32.f16.f16"}, formats::fp16},
     {{"sm_80", "mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32"}, formats::int8}}};

CodeMatrix drawn_scales(std::int64_t rows, std::int64_t columns, Random& random) {
  const std::array formats = {fp32, fp32, formats::fp64, formats::bf16, formats::e8m0};
  const Format f = formats[random.below(formats.size())];
  CodeMatrix m = random_matrix(fp32, 1, rows, columns, random, -6, 6);
  CodeMatrix to = emulator::make_matrix(f, 1, rows, columns);
  for (std::int64_t at = 0; at < m.size(); ++at) {
    // FP64 scales with bits that FP32 has not.
    const double x = std::fabs(value_of(fp32, m[at])) * (1 + std::ldexp(1.0, -30));
    to.set(at, formats::convert(formats::fp64, std::bit_cast<std::uint64_t>(x), f));
  }
  return to;
}

/// Scales of the tensor, of rows, or of blocks; along K one, or one for each `block`.
Scaled drawn_problem(const ScaledUnit& unit, Random& random) {
  constexpr std::int64_t usual = 128;
  Scaled s;
  const bool is_large = random.one_in(8);  // many outputs take another way through the epilogue
  const std::int64_t m = is_large ? random.between(130, 140) : random.between(1, 5);
  const std::int64_t n = is_large ? random.between(8, 12) : random.between(1, 5);
  const std::int64_t k = random.between(1, is_large ? 40 : 400);
  s.x.a = random_matrix(unit.operands, 1, m, k, random);
  s.x.b = random_matrix(unit.operands, 1, k, n, random);
  // Without a hint blocks are of 128 where these give the count, else as even as can be.
  std::int64_t block = k;
  if (!is_large && random.one_in(2)) {
    const std::int64_t blocks = random.between(2, 4);
    block = (k + usual - 1) / usual == blocks ? usual : (k + blocks - 1) / blocks;
    if ((k + block - 1) / block != blocks) block = k;
  }
  const auto along = [&](std::int64_t each) { return (k + each - 1) / each; };
  const auto lines = [&](std::int64_t count) {
    const int kind = random.between(0, 2);
    const std::int64_t most = count > usual ? usual : count;
    return kind == 0 ? count : (kind == 1 ? most : 1);
  };
  const int which = random.between(0, 7);  // of eight, one has none and some have one operand's
  if (which != 0 && which != 1) {
    s.rows_each = lines(m);
    s.a_k_each = which == 2 ? k : block;
    s.x.scale_a = drawn_scales((m + s.rows_each - 1) / s.rows_each, along(s.a_k_each), random);
  }
  if (which != 0 && which != 7) {
    s.columns_each = lines(n);
    s.b_k_each = which == 3 ? k : block;
    s.x.scale_b =
        drawn_scales(along(s.b_k_each), (n + s.columns_each - 1) / s.columns_each, random);
  }
  return s;
}

GemmPlan drawn_plan(const ScaledUnit& unit, const Scaled& s, Random& random) {
  const bool integers = formats::is_integer(unit.operands);
  GemmPlan plan;
  plan.unit = unit.unit;
  const std::array<std::int64_t, 4> intervals = {16, 32, 64, 128};
  if (s.x.scale_k != 0 || random.one_in(2)) {
    plan.promotion.interval = intervals[random.below(intervals.size())];
    plan.promotion.adder = static_cast<Promotion::Adder>(random.below(5));
    if (s.x.scale_k != 0 && !random.one_in(4)) plan.promotion.interval = s.x.scale_k;
  }
  if (random.one_in(3)) {
    plan.split.parts = random.between(2, 4);
    plan.split.tile = random.one_in(2) && s.x.scale_k != 0 ? s.x.scale_k : 16;
    if (random.one_in(2) && !integers) plan.split.order = emulator::SumOrder::in_place;
  }
  if (random.one_in(4)) {
    plan.slices.parts = 2;
    plan.slices.tile = s.x.scale_k != 0 ? s.x.scale_k : 32;
    if (random.one_in(2)) plan.slices.division = emulator::Division::round_robin;
  }
  Epilogue& e = plan.epilogue;
  e.addition = static_cast<Epilogue::Addition>(random.below(integers ? 4 : 5));
  const bool promotes =
      plan.promotion.interval != 0 && plan.promotion.adder != Promotion::Adder::add;
  if (!promotes || random.one_in(8)) e.scales = static_cast<Epilogue::Scales>(random.below(3));
  const std::array outputs = {fp32, formats::fp16, formats::bf16};
  e.output = outputs[random.below(outputs.size())];
  if (random.one_in(4)) e.compute = formats::fp64;
  if (random.one_in(2)) e.alpha = 1.0 / random.between(2, 9);
  if (e.alpha != 1) {
    const bool is_simt = unit.unit.arch == "simt";
    const std::array places = {Epilogue::AlphaOn::sum, Epilogue::AlphaOn::d, Epilogue::AlphaOn::a,
                               Epilogue::AlphaOn::b};
    e.alpha_on = places[random.below(is_simt ? 4 : 2)];
  }
  if (random.one_in(2)) e.beta = -0.1 * random.between(1, 9);
  if (random.one_in(4)) e.via = outputs[random.below(outputs.size())];
  if (random.one_in(4)) e.activation = emulator::Activation::relu;
  return plan;
}

bool same(const Format& f, std::uint64_t x, std::uint64_t y) {
  return x == y || (oracle::is_nan(oracle_format(f), x) && oracle::is_nan(oracle_format(f), y));
}

/// Draws so many hundred products.
void check_scales(std::uint64_t seed, int hundreds) {
  Random random(seed);
  std::map<std::string, int> ways;
  for (int round = 0; round < 100 * hundreds; ++round) {
    const ScaledUnit& unit = scaled_units[random.below(scaled_units.size())];
    Scaled s = drawn_problem(unit, random);
    take_scale_k(s.x);
    const GemmPlan plan = drawn_plan(unit, s, random);
    if (random.one_in(2))
      s.x.c = random_matrix(random.one_in(2) ? fp32 : formats::bf16, 1, s.x.m(), s.x.n(), random);
    const bool begins = plan.epilogue.addition == Epilogue::Addition::initial;
    if ((begins && s.x.c.empty()) || random.one_in(3))
      s.x.bias = random_matrix(formats::bf16, 1, 1, s.x.n(), random);
    INFO(to_text(plan) << ", " << s.x.m() << " x " << s.x.n() << " x " << s.x.k() << ", scales "
                       << s.x.scale_a.rows << " x " << s.x.scale_a.columns << " and "
                       << s.x.scale_b.rows << " x " << s.x.scale_b.columns);
    const ScalesJudge judge(plan, s);
    if (const auto refusal = judge.refusal()) {
      std::string said;
      try {
        execute(plan, s.x, 1);
      } catch (const formats::Error& error) {
        said = error.what();
      }
      CHECK(said.find(*refusal) != std::string::npos);
      ++ways[*refusal];
      continue;
    }
    const CodeMatrix d = execute(plan, s.x, 2);
    std::int64_t wrong = 0;
    for (std::int64_t i = 0; i < d.rows; ++i)
      for (std::int64_t j = 0; j < d.columns; ++j)
        wrong += same(d.format, d(0, i, j), judge.output(i, j)) ? 0 : 1;
    REQUIRE(wrong == 0);
    const bool has_scales = !s.x.scale_a.empty() || !s.x.scale_b.empty();
    const std::string where = judge.promotes_scales() ? "promoted" : "epilogue";
    ++ways[(has_scales ? "scaled, " : "plain, ") + where];
    if (s.x.scale_k != 0) ++ways["blocks"];
    if (has_scales && d.size() >= 1024) ++ways["many outputs"];
  }
  for (const auto& [way, fewest] :
       std::map<std::string, int>{{"scaled, promoted", 16},
                                  {"scaled, epilogue", 11},
                                  {"blocks", 9},
                                  {"many outputs", 2},
                                  {"whose scales differ", 1},
                                  {"enter by promote alone, with an adder that scales", 1},
                                  {"is not read: scales enter by promote=", 1}}) {
    INFO(way);
    CHECK(ways[way] >= hundreds * fewest);
  }
}

TEST_CASE("scales enter where the plan says, as exact arithmetic has it", "[long]") {
  check_scales(94, 3);
}

TEST_CASE("scales enter where the plan says, in many products", "[sweep]") { check_scales(95, 40); }

TEST_CASE("scales of blocks meet pieces and loads") {
  // TF32 holds BF16 numbers, so that the pieces of these change nothing but the order of K.
  Random random(95);
  GemmProblem x;
  x.a = random_matrix(formats::bf16, 1, 3, 160, random);
  x.b = random_matrix(formats::bf16, 1, 160, 2, random);
  x.scale_a = random_matrix(fp32, 1, 3, 5, random);
  x.scale_b = random_matrix(fp32, 1, 5, 1, random);
  take_scale_k(x);
  REQUIRE(x.scale_k == 32);
  const std::string unit = "sm_90/wgmma.mma_async.sync.aligned.m64nNk8.f32.tf32.tf32";
  const auto computed = [&](const std::string& keys) {
    return execute(emulator::parse_plan(unit + " promote=32:scaled_fma" + keys, "test"), x);
  };
  const CodeMatrix d = computed("");
  CHECK(computed(" input=rne:2x1").bytes == d.bytes);
  // Products of rests are zeros, which leave the sums as they are.
  CHECK(computed(" input=rne:2x2").bytes == d.bytes);
  CHECK(computed(" input=rne:2x2:run32").bytes == d.bytes);
  CHECK_THROWS_WITH(computed(" loads=4x16:4"),
                    "plan: loads=4x16:4 mixes elements of different scales of 32 elements of K "
                    "(valid: LANES x RUN that divides 32)");
  CHECK_THROWS_WITH(
      computed(" input=rne:2x2:scaled8"),
      "plan: promote=32:scaled_fma scales the leading chain alone of input=rne:2x2:scaled8 "
      "(valid: promote=32)");
  // Exact results have the scales of blocks, too.
  const CodeMatrix exact = emulator::nearly_exact(x, {}, true, 1);
  for (std::int64_t at = 0; at < d.size(); ++at) {
    double sum = 0, terms = 0;
    for (std::int64_t k = 0; k < 160; ++k) {
      const double term =
          value_of(formats::bf16, x.a(0, at / 2, k)) * value_of(formats::bf16, x.b(0, k, at % 2)) *
          value_of(fp32, x.scale_a(0, at / 2, k / 32)) * value_of(fp32, x.scale_b(0, k / 32, 0));
      sum += term;
      terms += std::fabs(term);
    }
    CHECK(std::fabs(value_of(formats::fp64, exact[at]) - sum) < 1e-12 * terms);
  }
}

TEST_CASE("scales that do not fit their operand are refused") {
  GemmProblem x;
  x.a = emulator::make_matrix(formats::e4m3, 2, 300, 300);
  x.b = emulator::make_matrix(formats::e4m3, 2, 300, 200);
  const auto said = [&](std::int64_t a_batch, std::int64_t a_rows, std::int64_t a_blocks,
                        std::int64_t b_blocks, std::int64_t b_columns) -> std::string {
    x.scale_a = emulator::make_matrix(fp32, a_batch, a_rows, a_blocks);
    x.scale_b = emulator::make_matrix(fp32, 1, b_blocks, b_columns);
    try {
      take_scale_k(x);
    } catch (const formats::Error& error) {
      return error.what();
    }
    return {};
  };
  CHECK(said(1, 3, 3, 3, 2).empty());
  CHECK(x.scale_k == 128);
  CHECK(emulator::elements_per_scale(300, 3, 0) == 128);
  CHECK(emulator::elements_per_scale(300, 4, 0) == 75);
  CHECK(said(1, 300, 1, 3, 200).empty());
  CHECK(x.scale_k == 128);
  CHECK(said(2, 300, 1, 1, 1).empty());
  CHECK(x.scale_k == 0);
  CHECK(said(3, 300, 1, 1, 1) == "A: scales of 3 matrices, where A has 2");
  CHECK(said(1, 301, 1, 1, 1) == "A: more scales than elements: 301 for 300 rows");
  CHECK(said(1, 300, 4, 3, 1) == "B: 3 scales along K, where A has 4");
  CHECK(said(1, 299, 1, 1, 1) == "A: 299 scales do not serve 300 rows in equal blocks");
  CHECK(said(1, 1, 1, 1, 201) == "B: more scales than elements: 201 for 200 columns");
}

}  // namespace
}  // namespace guardbit::tests
