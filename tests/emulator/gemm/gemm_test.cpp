#include "emulator/gemm/gemm.hpp"

#include <array>
#include <bit>
#include <cmath>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "emulator/catalogue/instruction_catalogue.hpp"
#include "emulator/gemm/scalar.hpp"
#include "emulator/model/dot.hpp"
#include "formats/support/words.hpp"
#include "tests/catch.hpp"
#include "tests/emulator/gemm/gemm_arithmetic.hpp"
#include "tests/emulator/gemm/gemm_inputs.hpp"
#include "tests/emulator/gemm/gemm_owners.hpp"

namespace guardbit::tests {
namespace {

using emulator::CodeMatrix;
using emulator::Division;
using emulator::GemmPlan;
using emulator::GemmProblem;
using emulator::SumOrder;
using formats::fp32;

// A judge that computes one output from the words of plan.hpp, with the emulated scalar
// arithmetic of formats/ and one dot() after another. It shares no code with gemm.cpp.

class Judge {
 public:
  Judge(const GemmPlan& plan, const GemmProblem& x) : plan_(plan), x_(x) {
    if (plan.unit.arch != "simt")
      row_ = emulator::require_instruction(plan.unit.arch, plan.unit.instruction, "judge");
  }

  std::uint64_t output(std::int64_t g, std::int64_t i, std::int64_t j) const {
    std::map<std::int64_t, std::vector<std::int64_t>> parts;
    for (std::int64_t k = 0; k < x_.k(); ++k) parts[part_of(plan_, x_, {g, i, j}, k)].push_back(k);
    std::vector<std::uint64_t> sums;
    for (const auto& [part, ks] : parts) {
      std::map<std::int64_t, std::vector<std::int64_t>> slices;
      for (std::size_t at = 0; at < ks.size(); ++at)
        slices[owner(plan_.slices, static_cast<std::int64_t>(at), std::ssize(ks))].push_back(
            ks[at]);
      std::vector<std::uint64_t> of_slices;
      of_slices.reserve(slices.size());
      for (const auto& [slice, own] : slices) {
        const bool is_first = sums.empty() && of_slices.empty();
        of_slices.push_back(promoted(g, i, j, own, is_first ? first_sum(g, i, j) : 0));
      }
      sums.push_back(added(plan_.slices, of_slices));
    }
    if (plan_.split.order == SumOrder::in_place) return in_place(g, i, j, sums);
    emulator::Partition split = plan_.split;
    if (!plan_.stream_k.none()) split.order = plan_.stream_k.order;
    if (!plan_.stream_k.none()) split.sums = plan_.stream_k.sums;
    return ended(added(split, sums), addend(g, i, j), plan_.epilogue.beta);
  }

 private:
  std::uint64_t operand(const CodeMatrix& m, std::int64_t g, std::int64_t i, std::int64_t j,
                        const Format& f) const {
    return formats::convert(m.format, m(g, i, j), f, plan_.input.rounding);
  }

  using AlphaOn = emulator::Epilogue::AlphaOn;

  static std::uint64_t code(double x) {
    return formats::convert(formats::fp64, std::bit_cast<std::uint64_t>(x), fp32);
  }

  /// In that format, times alpha where that is this operand's.
  std::uint64_t scaled(const CodeMatrix& m, std::int64_t g, std::int64_t i, std::int64_t j,
                       AlphaOn place, const Format& f) const {
    const std::uint64_t x = operand(m, g, i, j, f);
    if (plan_.epilogue.alpha_on != place) return x;
    return rounded_product(f, formats::convert(fp32, code(plan_.epilogue.alpha), f), x);
  }

  /// Neighbours, then neighbours of these, until one is left; the last may have none.
  static std::uint64_t tree(std::vector<std::uint64_t> numbers) {
    while (numbers.size() > 1) {
      std::vector<std::uint64_t> next;
      for (std::size_t i = 0; i < numbers.size(); i += 2)
        next.push_back(i + 1 < numbers.size() ? rounded_sum(fp32, numbers[i], numbers[i + 1])
                                              : numbers[i]);
      numbers = next;
    }
    return numbers[0];
  }

  bool begins_with_addend() const {
    return plan_.epilogue.addition == emulator::Epilogue::Addition::initial;
  }

  /// What the first chain begins with, in FP32.
  std::uint64_t first_sum(std::int64_t g, std::int64_t i, std::int64_t j) const {
    if (!begins_with_addend()) return 0;
    if (x_.c.empty()) return formats::convert(x_.bias.format, x_.bias(0, 0, j), fp32);
    const std::uint64_t c = formats::convert(x_.c.format, x_.c(g, i, j), fp32);
    const double beta = plan_.epilogue.beta;
    return beta == 0 ? c : rounded_product(fp32, code(beta), c);
  }

  std::uint64_t chain(std::int64_t g, std::int64_t i, std::int64_t j, const Ks& ks,
                      std::uint64_t sum) const {
    if (plan_.unit.arch == "simt") {
      const Format f = plan_.unit.instruction == "mul_add.bf16" ? formats::bf16 : fp32;
      std::vector<std::uint64_t> products;
      for (const std::int64_t k : ks) {
        const std::uint64_t a = scaled(x_.a, g, i, k, AlphaOn::a, f),
                            b = scaled(x_.b, g, k, j, AlphaOn::b, f);
        if (plan_.unit.instruction == "fma.fp32") {
          sum = rounded_fma(fp32, a, b, sum);
        } else {
          products.push_back(formats::convert(f, rounded_product(f, a, b), fp32));
          sum = rounded_sum(fp32, sum, products.back());
        }
      }
      return plan_.products == emulator::ProductOrder::tree ? tree(products) : sum;
    }
    // Neighbours in K share an instruction up to its K, the incomplete tile first if so planned.
    for (std::size_t begin = 0; begin < ks.size();) {
      std::size_t run = 1;
      while (begin + run < ks.size() &&
             ks[begin + run] == ks[begin] + static_cast<std::int64_t>(run))
        ++run;
      std::size_t residue =
          plan_.residue_first == 0 ? 0 : run % static_cast<std::size_t>(plan_.residue_first);
      for (std::size_t at = 0; at < run;) {
        const std::size_t left = residue > at ? residue - at : run - at;
        const std::size_t length = std::min(left, static_cast<std::size_t>(row_.shape.k));
        std::vector<std::uint64_t> a, b;
        for (std::size_t k = at; k < at + length; ++k) {
          a.push_back(operand(x_.a, g, i, ks[begin + k], row_.a));
          b.push_back(operand(x_.b, g, ks[begin + k], j, row_.b));
        }
        sum = emulator::dot(row_, {a, b, sum, {}, {}});
        at += length;
      }
      begin += run;
    }
    return sum;
  }

  std::uint64_t promoted(std::int64_t g, std::int64_t i, std::int64_t j, const Ks& ks,
                         std::uint64_t first) const {
    const auto interval = static_cast<std::size_t>(plan_.promotion.interval);
    if (interval == 0) return chain(g, i, j, ks, first);
    std::uint64_t sum = 0;
    for (std::size_t begin = 0; begin < ks.size(); begin += interval) {
      const Ks part(
          ks.begin() + static_cast<std::ptrdiff_t>(begin),
          ks.begin() + static_cast<std::ptrdiff_t>(std::min(ks.size(), begin + interval)));
      sum = rounded_sum(fp32, sum, chain(g, i, j, part, begin == 0 ? first : 0));
    }
    return sum;
  }

  static std::uint64_t added(const emulator::Partition& p, std::vector<std::uint64_t> sums) {
    if (sums.size() == 1) return sums[0];
    for (std::uint64_t& x : sums)
      x = formats::convert(p.sums, formats::convert(fp32, x, p.sums), fp32);
    const bool descends = p.order == SumOrder::descending || p.order == SumOrder::adjacent_last;
    if (descends) std::reverse(sums.begin(), sums.end());
    const auto in_turn = [](const std::vector<std::uint64_t>& list) {
      std::uint64_t total = list[0];
      for (std::size_t s = 1; s < list.size(); ++s) total = rounded_sum(fp32, total, list[s]);
      return total;
    };
    if (p.order == SumOrder::ascending || p.order == SumOrder::descending) return in_turn(sums);
    if (p.order == SumOrder::last_first) {
      std::rotate(sums.begin(), sums.end() - 1, sums.end());
      return in_turn(sums);
    }
    if (p.order == SumOrder::by_four && sums.size() > 32) {
      // 128 sums take the parts in turn and are halved twice.
      std::vector<std::uint64_t> few(128);
      for (std::size_t s = 0; s < sums.size(); ++s)
        few[s % 128] = s < 128 ? sums[s] : rounded_sum(fp32, few[s % 128], sums[s]);
      for (const std::size_t half : {std::size_t{64}, std::size_t{32}}) {
        for (std::size_t s = 0; s < half; ++s) few[s] = rounded_sum(fp32, few[s], few[s + half]);
        few.resize(half);
      }
      sums = few;
    }
    if (p.order == SumOrder::by_four || p.order == SumOrder::buffers) {
      // The parts that each sum takes; of buffers, the last part takes the sums.
      const bool buffers = p.order == SumOrder::buffers;
      const std::size_t count = buffers ? (sums.size() + 1) / 2 : 4;
      std::vector<std::vector<std::uint64_t>> taken(count);
      for (std::size_t s = 0; s + (buffers ? 1 : 0) < sums.size(); ++s)
        taken[s % count].push_back(sums[s]);
      std::vector<std::uint64_t> totals;
      if (buffers) totals.push_back(sums.back());
      for (const auto& list : taken)
        if (!list.empty()) totals.push_back(in_turn(list));
      return in_turn(totals);
    }
    const bool adjacent = p.order == SumOrder::adjacent || p.order == SumOrder::adjacent_last;
    // Threads without a part take part in the halving, with zeros.
    if (!adjacent) sums.resize(std::max(sums.size(), static_cast<std::size_t>(p.parts)));
    if (p.order == SumOrder::shuffles) sums.resize(std::bit_ceil(sums.size()));
    if (p.group > 1) {
      emulator::Partition of_group = p, of_groups = p;
      of_group.group = of_groups.group = 0;
      of_group.parts = of_groups.parts = 1;
      of_group.sums = of_groups.sums = fp32;
      std::vector<std::uint64_t> groups;
      for (std::size_t first = 0; first < sums.size(); first += static_cast<std::size_t>(p.group))
        groups.push_back(
            added(of_group,
                  {sums.begin() + static_cast<std::ptrdiff_t>(first),
                   sums.begin() + static_cast<std::ptrdiff_t>(std::min(
                                      sums.size(), first + static_cast<std::size_t>(p.group)))}));
      return added(of_groups, groups);
    }
    while (sums.size() > 1) {
      std::vector<std::uint64_t> next;
      const std::size_t half = (sums.size() + 1) / 2;
      for (std::size_t s = 0; s < half; ++s) {
        const std::size_t first = adjacent ? 2 * s : s;
        const std::size_t second = adjacent ? 2 * s + 1 : s + half;
        next.push_back(second < sums.size() ? rounded_sum(fp32, sums[first], sums[second])
                                            : sums[first]);
      }
      sums = next;
    }
    return sums[0];
  }

  /// C's code in FP32; nothing where none is added.
  std::optional<std::uint64_t> addend(std::int64_t g, std::int64_t i, std::int64_t j) const {
    if (x_.c.empty() || plan_.epilogue.beta == 0 || begins_with_addend()) return {};
    return formats::convert(x_.c.format, x_.c(g, i, j), fp32);
  }

  std::uint64_t in_place(std::int64_t g, std::int64_t i, std::int64_t j,
                         const std::vector<std::uint64_t>& sums) const {
    const auto is_last = [&](std::size_t s) { return s + 1 == sums.size(); };
    std::uint64_t d = ended(sums[0], addend(g, i, j), plan_.epilogue.beta, is_last(0));
    for (std::size_t s = 1; s < sums.size(); ++s)
      d = ended(sums[s], formats::convert(plan_.epilogue.output, d, fp32), 1, is_last(s));
    return d;
  }

  std::uint64_t ended(std::uint64_t sum, std::optional<std::uint64_t> added, double weight,
                      bool is_last = true) const {
    const emulator::Epilogue& e = plan_.epilogue;
    std::uint64_t result = 0;
    const bool has_alpha = !e.scales_operand() && !begins_with_addend();
    const std::uint64_t alpha = code(has_alpha ? e.alpha : 1), beta = code(weight);
    if (e.alpha_on == AlphaOn::d && has_alpha)
      sum = formats::convert(e.output, formats::convert(fp32, sum, e.output), fp32);
    if (!added) {
      result = rounded_product(fp32, alpha, sum);
    } else {
      const std::uint64_t c = *added;
      const std::uint64_t product = rounded_product(fp32, alpha, sum);
      const std::uint64_t addend = rounded_product(fp32, beta, c);
      switch (e.addition) {
        case emulator::Epilogue::Addition::fma_product:
          result = rounded_fma(fp32, alpha, sum, addend);
          break;
        case emulator::Epilogue::Addition::fma_addend:
          result = rounded_fma(fp32, beta, c, product);
          break;
        case emulator::Epilogue::Addition::separate:
        case emulator::Epilogue::Addition::initial:
          result = rounded_sum(fp32, product, addend);
          break;
        default:
          result = rounded_sum(
              fp32, formats::convert(e.output, formats::convert(fp32, product, e.output), fp32),
              addend);
      }
    }
    const bool is_negative = (result >> 31) != 0 && (result << 1 & 0xffffffff) <= 0xff000000;
    if (is_last && is_negative && e.activation == emulator::Activation::relu) result = 0;
    return formats::convert(fp32, result, e.output);
  }

  const GemmPlan& plan_;
  const GemmProblem& x_;
  emulator::MatrixInstruction row_;
};

void check(const GemmPlan& plan, const GemmProblem& problem) {
  INFO(to_text(plan));
  const CodeMatrix d = emulator::execute(plan, problem, 2);
  const Judge judge(plan, problem);
  std::int64_t wrong = 0;
  for (std::int64_t g = 0; g < d.batch; ++g)
    for (std::int64_t i = 0; i < d.rows; ++i)
      for (std::int64_t j = 0; j < d.columns; ++j)
        wrong += d(g, i, j) != judge.output(g, i, j) ? 1 : 0;
  REQUIRE(wrong == 0);
}

TEST_CASE("plans are executed as they are written") {
  Random random(81);
  const std::vector<std::pair<emulator::GemmUnit, Format>> units = {
      {{"simt", "fma.fp32"}, fp32},
      {{"simt", "fma.fp32"}, formats::fp16},
      {{"simt", "mul_add.fp32"}, fp32},
      {{"simt", "mul_add.bf16"}, formats::bf16},
      {{"simt", "mul_add.bf16"}, fp32},
      {{"sm_90", "wgmma.mma_async.sync.aligned.m64nNk16.f32.f16.f16"}, formats::fp16},
      {{"sm_80", "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32"}, formats::bf16},
      {{"sm_90", "wgmma.mma_async.sync.aligned.m64nNk8.f32.tf32.tf32"}, fp32},
      {{"sm_90", "wgmma.mma_async.sync.aligned.m64nNk32.f32.e4m3.e4m3"}, formats::e4m3}};
  int begun = 0;
  for (int round = 0; round < 240; ++round) {
    const auto& [unit, format] = units[random.below(units.size())];
    GemmPlan plan = random_plan(random);
    plan.unit = unit;
    plan.input = {plan.input.rounding};
    plan.convolution = {};
    plan.loads = {};
    plan.promotion.adder = emulator::Promotion::Adder::add;
    if (unit.instruction.starts_with("mul_add") && random.one_in(2))
      plan.products = emulator::ProductOrder::tree;
    if (unit.arch != "simt" && plan.epilogue.scales_operand())
      plan.epilogue.alpha_on = emulator::Epilogue::AlphaOn::sum;
    if (plan.promotion.interval != 0) plan.residue_first = 0;
    if (plan.promotion.interval != 0) plan.promotion.interval = 32;
    plan.epilogue.compute = fp32;
    plan.epilogue.output = random.one_in(2) ? fp32 : formats::fp16;
    const int m = random.between(1, 5), n = random.between(1, 5), k = random.between(1, 150);
    const int batch = random.between(1, 2);
    GemmProblem x;
    x.a = random_matrix(format, batch, m, k, random);
    x.b = random_matrix(format, batch, k, n, random);
    if (random.one_in(2)) x.c = random_matrix(plan.epilogue.output, batch, m, n, random);
    using Addition = emulator::Epilogue::Addition;
    if (plan.products == emulator::ProductOrder::tree &&
        plan.epilogue.addition == Addition::initial)
      plan.epilogue.addition = Addition::separate;
    const bool begins = plan.epilogue.addition == Addition::initial;
    if (begins && x.c.empty()) x.bias = random_matrix(formats::fp16, 1, 1, n, random);
    begun += begins ? 1 : 0;
    check(plan, x);
  }
  CHECK(begun > 20);
}

TEST_CASE("sums of many parts are added in the order that the plan names") {
  Random random(82);
  for (const SumOrder order : {SumOrder::by_four, SumOrder::shuffles, SumOrder::halves}) {
    for (const int parts : {3, 24, 31, 33, 63, 66, 100, 128, 129, 264}) {
      GemmPlan plan;
      plan.slices = {parts, random.between(1, 2), Division::round_robin, order, fp32};
      GemmProblem x;
      const int k = parts * random.between(1, 3) - random.between(0, 2);
      x.a = random_matrix(fp32, 1, 1, k, random);
      x.b = random_matrix(fp32, 1, k, 3, random);
      check(plan, x);
    }
  }
}

TEST_CASE("shuffles differ from halves where lanes are no power of two") {
  // 2^30 and -2^30 meet first by shuffles (lanes 0 and 16 of 24), last by halves.
  const auto single = [](float v) { return std::uint64_t{std::bit_cast<std::uint32_t>(v)}; };
  GemmProblem x;
  x.a = emulator::make_matrix(fp32, 1, 1, 24);
  x.b = emulator::make_matrix(fp32, 1, 24, 1);
  for (std::int64_t k = 0; k < 24; ++k) {
    x.a.set(k, single(k == 0 ? 0x1p30F : k == 16 ? -0x1p30F : 1));
    x.b.set(k, single(1));
  }
  const auto sum = [&](const char* plan) {
    return execute(emulator::parse_plan(plan, "test"), x)[0];
  };
  CHECK(sum("simt/fma.fp32 lanes=24x1:round_robin:shuffles") == single(22));
  CHECK(sum("simt/fma.fp32 lanes=24x1:round_robin:halves") != single(22));
}

TEST_CASE("sums of integers wrap, and what int32 does not hold saturates first") {
  const auto sum = [](double x, double y) { return emulator::scalar::add(formats::int32, x, y); };
  const double largest = 0x1p31 - 1, inf = std::numeric_limits<double>::infinity();
  CHECK(sum(largest, 1) == -0x1p31);
  CHECK(sum(-0x1p31, -1) == largest);
  CHECK(sum(inf, 0) == largest);
  CHECK(sum(-inf, 0) == -0x1p31);
  CHECK(sum(1e300, -1) == largest - 1);
  CHECK(std::isfinite(sum(std::nan(""), 5)));
}

TEST_CASE("products are rounded to narrower formats whatever their size") {
  Random random(83);
  for (const Format& f : {formats::fp16, formats::bf16}) {
    const std::string unit = "simt/mul_add." + formats::name_of(f) + " d=fp32";
    GemmProblem x;
    x.a = emulator::make_matrix(f, 1, 60, 1);
    x.b = emulator::make_matrix(f, 1, 1, 60);
    for (CodeMatrix* const m : {&x.a, &x.b})
      for (std::int64_t i = 0; i < 60; ++i)
        m->set(i, i % 6 == 0 ? special_code(f, random) : random_code(f, random));
    for (const char* const keys : {"", " products=tree"}) {
      const CodeMatrix d = execute(emulator::parse_plan(unit + keys, "test"), x);
      std::int64_t wrong = 0;
      for (std::int64_t i = 0; i < 60; ++i)
        for (std::int64_t j = 0; j < 60; ++j) {
          const double expected = value_of(f, rounded_product(f, x.a[i], x.b[j]));
          const double got = value_of(fp32, d(0, i, j));
          wrong += expected == got || (std::isnan(expected) && std::isnan(got)) ? 0 : 1;
        }
      CHECK(wrong == 0);
    }
  }
}

TEST_CASE("scales and C enter where the plan says") {
  Random random(82);
  const auto words = [](const std::string& text) { return emulator::parse_plan(text, "test"); };
  GemmProblem x;
  x.a = random_matrix(fp32, 1, 3, 40, random);
  x.b = random_matrix(fp32, 1, 40, 2, random);
  const std::string tf32 = "sm_90/wgmma.mma_async.sync.aligned.m64nNk8.f32.tf32.tf32";

  SECTION("scales of blocks enter where the promotion says") {
    x.a = random_matrix(formats::e4m3, 1, 2, 64, random);
    x.b = random_matrix(formats::e4m3, 1, 64, 2, random);
    x.scale_a = random_matrix(fp32, 1, 2, 2, random, 0, 0);
    x.scale_b = random_matrix(fp32, 1, 2, 1, random, 0, 0);
    x.scale_k = 32;
    const std::string unit = "sm_90/wgmma.mma_async.sync.aligned.m64nNk32.f32.e4m3.e4m3";
    const CodeMatrix d = execute(words(unit + " promote=32:scaled_fma"), x);
    const emulator::MatrixInstruction instruction = emulator::require_instruction(
        "sm_90", "wgmma.mma_async.sync.aligned.m64nNk32.f32.e4m3.e4m3", "test");
    for (std::int64_t i = 0; i < 2; ++i) {
      for (std::int64_t j = 0; j < 2; ++j) {
        std::uint64_t sum = 0;
        for (std::int64_t block = 0; block < 2; ++block) {
          std::vector<std::uint64_t> a, b;
          for (std::int64_t k = block * 32; k < block * 32 + 32; ++k) {
            a.push_back(x.a(0, i, k));
            b.push_back(x.b(0, k, j));
          }
          sum = rounded_fma(fp32, emulator::dot(instruction, {a, b, 0, {}, {}}),
                            rounded_product(fp32, x.scale_a(0, i, block), x.scale_b(0, block, 0)),
                            sum);
        }
        CHECK(d(0, i, j) == sum);
      }
    }
  }
  SECTION("a chain that begins with C") {
    x.c = random_matrix(fp32, 1, 3, 2, random);
    const CodeMatrix d = execute(
        words("sm_80/mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 input=rz add=initial"), x);
    const emulator::MatrixInstruction instruction = emulator::require_instruction(
        "sm_80", "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32", "test");
    std::uint64_t sum = x.c(0, 2, 1);
    for (std::int64_t begin = 0; begin < 40; begin += 8) {
      std::vector<std::uint64_t> a, b;
      for (std::int64_t k = begin; k < begin + 8; ++k) {
        a.push_back(x.a(0, 2, k) >> 13);
        b.push_back(x.b(0, k, 1) >> 13);
      }
      sum = emulator::dot(instruction, {a, b, sum, {}, {}});
    }
    CHECK(d(0, 2, 1) == sum);
  }
}

TEST_CASE("what has no room for C or for scales in its chain is refused") {
  Random random(21);
  GemmProblem x;
  x.a = random_matrix(fp32, 1, 2, 8, random);
  x.b = random_matrix(fp32, 1, 8, 3, random);
  CHECK_THROWS_WITH(execute(emulator::parse_plan("simt/fma.fp32 add=initial", "test"), x),
                    "plan: add=initial needs a C or a bias");
  x.c = random_matrix(fp32, 1, 2, 3, random);
  CHECK_THROWS_WITH(
      execute(emulator::parse_plan("sm_90/wgmma.mma_async.sync.aligned.m64nNk32.s32.s8.s8 "
                                   "input=rz:8x8:slices compute=fp64 add=initial",
                                   "test"),
              x),
      "plan: add=initial: integer slices and products=tree begin with zero");
  const std::string scaled =
      "mma.sync.aligned.m16n8k64.row.col.kind::mxf4nvf4.block_scale.scale_vec::4X.f32.e2m1.e2m1.f32.ue4m3";
  CHECK_THROWS_WITH(execute(emulator::parse_plan("sm_120/" + scaled, "test"), x),
                    "plan: " + scaled + " takes scale factors of blocks of K, which no plan has");
}

TEST_CASE("a result is stored as the plan says and goes through its function") {
  Random random(84);
  // Few outputs and many take different ways.
  for (const std::int64_t n : {7, 160}) {
    GemmProblem x;
    x.a = random_matrix(formats::bf16, 1, 9, 24, random);
    x.b = random_matrix(formats::bf16, 1, 24, n, random);
    x.bias = random_matrix(formats::bf16, 1, 1, n, random);
    const std::string unit = n == 7 ? "simt/fma.fp32 split=2x8:ceil"
                                    : "sm_90/wgmma.mma_async.sync.aligned.m64nNk16.f32.bf16.bf16";
    if (n != 7) x.bias = {};
    const CodeMatrix sums = execute(emulator::parse_plan(unit + " d=fp32", "test"), x);
    for (const std::string via : {"", " via=bf16", " via=fp16"}) {
      for (const auto activation :
           {emulator::Activation::none, emulator::Activation::relu, emulator::Activation::gelu,
            emulator::Activation::gelu_erfc, emulator::Activation::silu}) {
        for (const Format& output : {fp32, formats::fp16, formats::bf16}) {
          const std::string text = unit + via +
                                   " activation=" + std::string(formats::word_of(activation)) +
                                   " d=" + formats::name_of(output);
          INFO(text);
          const CodeMatrix d = execute(emulator::parse_plan(text, "test"), x);
          std::int64_t wrong = 0;
          for (std::int64_t at = 0; at < d.size(); ++at) {
            double value = emulator::scalar::decoded(fp32, sums[at]);
            if (via == " via=bf16") value = emulator::scalar::rounded(formats::bf16, value);
            if (via == " via=fp16") value = emulator::scalar::rounded(formats::fp16, value);
            auto single = static_cast<float>(value);
            emulator::activate(activation, output, {&single, 1});
            wrong += d[at] != emulator::scalar::encoded(output, single) ? 1 : 0;
          }
          CHECK(wrong == 0);
        }
      }
    }
  }
}

TEST_CASE("a bias is what the first of several parts in D meets") {
  Random random(85);
  GemmProblem x;
  x.a = random_matrix(fp32, 1, 2, 30, random);
  x.b = random_matrix(fp32, 1, 30, 3, random);
  GemmProblem with_c = x;
  x.bias = random_matrix(fp32, 1, 1, 3, random);
  with_c.c = emulator::make_matrix(fp32, 1, 2, 3);
  for (std::int64_t at = 0; at < 6; ++at) with_c.c.set(at, x.bias[at % 3]);
  const GemmPlan plan = emulator::parse_plan("simt/fma.fp32 split=3x8:ceil:in_place", "test");
  GemmPlan adds_c = plan;
  adds_c.epilogue.beta = 1;
  CHECK(execute(plan, x).bytes == execute(adds_c, with_c).bytes);
}

TEST_CASE("a few outputs are what they are among all") {
  // They are computed from products taken once, not by the engines: of every instruction that this
  // takes, with zeros, subnormals, overflow and cancellation.
  Random random(86);
  int instructions = 0;
  for (const char* const arch : {"sm_70", "sm_75", "sm_80", "sm_89", "sm_90", "sm_100"}) {
    for (const emulator::MatrixInstruction& instruction : emulator::catalogue()) {
      const bool floating = instruction.a.encoding == formats::Encoding::floating;
      if (instruction.arch != arch || !floating || instruction.scale.count != 0 ||
          instruction.a != instruction.b || instruction.sparsity.group_elements != 0 ||
          instruction.c != instruction.d || instruction.a == formats::fp64)
        continue;
      if (std::string_view(instruction.name).find("wmma.mma") != std::string_view::npos) continue;
      GemmPlan plan;
      plan.unit = {arch, std::string(std::string_view(instruction.name))};
      plan.split = {2, 24, Division::round_robin, SumOrder::ascending, fp32};
      plan.epilogue.output = instruction.d;
      const int range = random.between(1, 3) * 9;
      GemmProblem x;
      x.a = random_matrix(instruction.a, 1, 2, 72, random, -range, range);
      x.b = random_matrix(instruction.b, 1, 72, 2, random, -range, range);
      for (std::int64_t at = 0; at < x.a.size(); at += random.between(1, 9)) x.a.set(at, 0);
      const std::vector<emulator::Output> outputs = {{0, 0, 1}, {0, 1, 0}, {0, 1, 1}};
      const GemmProblem few = select(x, outputs);
      INFO(to_text(plan));
      CHECK(execute(plan, few, 1).bytes == select(execute(plan, x, 1), outputs).bytes);
      instructions += emulator::prepare(plan, few, "test").few != nullptr ? 1 : 0;
    }
  }
  CHECK(instructions > 40);
}

TEST_CASE("the number of threads and the blocks of rows do not matter") {
  Random random(84);
  GemmProblem x;
  x.a = random_matrix(formats::fp16, 2, 90, 40, random);
  x.b = random_matrix(formats::fp16, 2, 40, 70, random);
  const GemmPlan plan = emulator::parse_plan(
      "sm_90/wgmma.mma_async.sync.aligned.m64nNk16.f32.f16.f16 split=2x16:ceil d=fp16", "test");
  const CodeMatrix one = execute(plan, x, 1);
  CHECK(one.bytes == execute(plan, x, 3).bytes);
  const std::vector<std::int64_t> rows = {0, 5, 89}, columns = {69, 1};
  CHECK(select(one, {rows, columns}).bytes == execute(plan, select(x, {rows, columns}), 1).bytes);
  const std::vector<emulator::Output> outputs = {{1, 3, 4}, {0, 89, 69}, {1, 0, 0}};
  CHECK(select(one, outputs).bytes == execute(plan, select(x, outputs), 1).bytes);
  // A selection knows the tiles of the product that it was taken from, also taken twice.
  const GemmPlan stream = emulator::parse_plan(
      "sm_90/wgmma.mma_async.sync.aligned.m64nNk16.f32.f16.f16 stream_k=7x32x16x16 d=fp32", "test");
  const CodeMatrix all = execute(stream, x, 2);
  CHECK(select(all, {rows, columns}).bytes == execute(stream, select(x, {rows, columns}), 1).bytes);
  CHECK(select(all, outputs).bytes == execute(stream, select(x, outputs), 1).bytes);
  const std::vector<emulator::Output> first = {{1, 1, 1}};
  CHECK(select(all, std::vector<emulator::Output>{{1, 5, 1}}).bytes ==
        execute(stream, select(select(x, {rows, columns}), first), 1).bytes);
}

}  // namespace
}  // namespace guardbit::tests
