#include "emulator/engine/continuation.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "emulator/catalogue/instruction_catalogue.hpp"
#include "emulator/catalogue/instruction_text.hpp"
#include "emulator/engine/engines.hpp"
#include "emulator/engine/matrix_product.hpp"
#include "emulator/gemm/gemm.hpp"
#include "emulator/gemm/plan.hpp"
#include "emulator/model/dot.hpp"
#include "formats/support/error.hpp"
#include "tests/catch.hpp"
#include "tests/emulator/gemm/gemm_arithmetic.hpp"
#include "tests/emulator/gemm/gemm_inputs.hpp"

// Units that take no addend, as a probe finds them where it may not pass one on. What they give for
// a K beyond their own is what the same arithmetic with that K gives: dot() with longer operands,
// or a loop of std::fma.
namespace guardbit::tests {
namespace {

using emulator::CodeMatrix;
using emulator::KRange;
using emulator::KRanges;
using emulator::MatrixInstruction;
using formats::fp32;

/// A unit as text; `A` stands for its addend.
struct Unit {
  const char* what;
  int k;
  const char* formats;
  const char* steps;
};

MatrixInstruction instruction_of(const Unit& unit, const std::string& addend) {
  std::string steps = unit.steps;
  for (std::size_t at = steps.find('A'); at != std::string::npos; at = steps.find('A'))
    steps.replace(at, 1, addend);
  static int count = 0;
  return emulator::parse_instruction("name u" + std::to_string(++count) +
                                         "\narch chip\nshape m1n1k" + std::to_string(unit.k) +
                                         "\nformats " + unit.formats + "\n" + steps,
                                     unit.what);
}

const std::array<std::string, 2> both_zeros = {"0", "-0"};

constexpr std::array known = {
    Unit{"fma", 24, "fp32 fp32 fp32 fp32",
         "step dot addend=A into=fp32 summation=fma_chain result=nearest_even\n"},
    Unit{"fma, downward", 24, "fp32 fp32 fp32 fp32",
         "step dot addend=A into=fp32 summation=fma_chain result=downward\n"},
    Unit{"fma of halves", 7, "fp16 fp16 fp32 fp32",
         "step dot addend=A into=fp32 summation=fma_chain result=nearest_even\n"},
    Unit{"fma of doubles", 16, "fp64 fp64 fp64 fp64",
         "step dot addend=A into=fp64 summation=fma_chain result=nearest_even\n"},
    Unit{"products, then sums", 24, "fp32 fp32 fp32 fp32",
         "step dot addend=A into=fp32 summation=pairwise terms=1 result=nearest_even\n"},
    Unit{"blocks of 8", 24, "fp16 fp16 fp32 fp32",
         "step dot addend=A into=fp32 terms=8 kept_fraction_bits=24 min_exponent=-133\n"},
    Unit{
        "blocks of 4 into halves", 16, "fp16 fp16 fp16 fp16",
        "step dot addend=A into=fp16 terms=4 kept_fraction_bits=24 min_exponent=-20 result=nearest_even\n"},
    Unit{"exact blocks", 16, "bf16 bf16 fp32 fp32",
         "step dot addend=A into=fp32 summation=exact terms=4 result=nearest_even\n"},
};

constexpr std::array unknown = {
    Unit{"one block", 16, "fp16 fp16 fp32 fp32",
         "step dot addend=A into=fp32 kept_fraction_bits=24 min_exponent=-133\n"},
    Unit{"one exact block", 16, "bf16 bf16 fp32 fp32",
         "step dot addend=A into=fp32 summation=exact result=nearest_even\n"},
    Unit{"a tree", 24, "fp32 fp32 fp32 fp32",
         "step dot addend=A into=fp32 summation=pairwise result=nearest_even\n"},
    Unit{"blocks that do not fill K", 24, "fp16 fp16 fp32 fp32",
         "step dot addend=A into=fp32 terms=16 kept_fraction_bits=24 min_exponent=-133\n"},
    Unit{"every other product", 16, "fp32 fp32 fp32 fp32",
         "step dot k=2:0 addend=A into=fp32 summation=fma_chain result=nearest_even\n"},
    Unit{"two chains, added", 16, "fp32 fp32 fp32 fp32",
         "step dot k=2:0 addend=A into=fp32 summation=fma_chain result=nearest_even\n"
         "step dot k=2:1 addend=A into=fp32 summation=fma_chain result=nearest_even\n"
         "step add addend=s1 other=s2 into=fp32 result=nearest_even\n"},
    Unit{"a chain, rounded at its end", 16, "bf16 bf16 bf16 bf16",
         "step dot addend=A into=fp32 summation=fma_chain result=nearest_even\n"
         "step convert addend=s1 into=bf16 result=nearest_even\n"},
    Unit{"a C that nothing comes of", 16, "fp32 fp32 fp32 fp32",
         "step dot addend=c into=fp32 summation=fma_chain result=nearest_even\n"
         "step dot addend=A into=fp32 summation=fma_chain result=nearest_even\n"},
};

/// Numbers, and lines of zeros whose products are -0.
emulator::GemmProblem problem_of(const MatrixInstruction& instruction, std::int64_t k,
                                 Random& random, std::int64_t m = 3, std::int64_t n = 5) {
  emulator::GemmProblem x;
  x.a = random_matrix(instruction.a, 1, m, k, random);
  x.b = random_matrix(instruction.b, 1, k, n, random);
  for (std::int64_t i = 0; i < k; ++i) {
    x.a.set(x.a.index(0, 0, i), 0);
    x.b.set(x.b.index(0, i, 0), x.b(0, i, 0) | formats::sign_mask(instruction.b));
  }
  return x;
}

/// The codes that a chain over ranges multiplies.
std::pair<std::vector<std::uint64_t>, std::vector<std::uint64_t>> factors(
    const emulator::GemmProblem& x, std::int64_t i, std::int64_t j, const KRange& range) {
  std::vector<std::uint64_t> a, b;
  for (std::int64_t k = range.begin; k < range.end; ++k)
    a.push_back(x.a(0, i, k)), b.push_back(x.b(0, k, j));
  return {a, b};
}

/// A unit and the same one with an addend, which goes on from a sum.
struct Pair {
  MatrixInstruction begins, goes_on;
};

/// The chain over these ranges: the first by the unit, whatever its K, the others from there on.
std::uint64_t chain(const Pair& unit, const emulator::GemmProblem& x, std::int64_t i,
                    std::int64_t j, const KRanges& ranges) {
  std::uint64_t sum = 0;
  bool first = true;
  for (const KRange& range : ranges) {
    const auto [a, b] = factors(x, i, j, range);
    sum = emulator::dot(first ? unit.begins : unit.goes_on, {a, b, sum});
    first = false;
  }
  return sum;
}

std::uint64_t added(const Format& f, std::vector<std::uint64_t> parts) {
  for (std::size_t p = 1; p < parts.size(); ++p) parts[0] = rounded_sum(f, parts[0], parts[p]);
  return parts[0];
}

/// Cut by hand: consecutive ranges of that length at most.
KRanges pieces(const KRange& range, std::int64_t length) {
  KRanges list;
  for (std::int64_t k = range.begin; k < range.end; k += length)
    list.push_back({k, std::min(k + length, range.end)});
  return list;
}

emulator::GemmPlan plan_of(const MatrixInstruction& instruction, const std::string& words) {
  const std::string d = formats::name_of(instruction.d);
  return emulator::parse_plan("chip/" + std::string(std::string_view(instruction.name)) +
                                  (instruction.d == formats::fp64 ? " compute=fp64" : "") +
                                  " d=" + d + words,
                              "test");
}

/// The chains of a plan; its sums are added in the order in which they are listed.
using Chains = std::vector<KRanges>;
int wrong(const Pair& unit, const std::string& words, const Chains& chains,
          const emulator::GemmProblem& x) {
  const Format sums = unit.begins.d == formats::fp64 ? formats::fp64 : fp32;
  const CodeMatrix d = emulator::execute(plan_of(unit.begins, words), x, 2);
  int count = 0;
  for (std::int64_t i = 0; i < d.rows; ++i) {
    for (std::int64_t j = 0; j < d.columns; ++j) {
      std::vector<std::uint64_t> parts;
      for (const KRanges& ranges : chains)
        parts.push_back(formats::convert(unit.begins.d, chain(unit, x, i, j, ranges), sums,
                                         formats::Rounding::nearest_even));
      if (words.find("promote") != std::string::npos) parts.insert(parts.begin(), 0);
      const std::uint64_t expected = formats::convert(sums, added(sums, parts), unit.begins.d,
                                                      formats::Rounding::nearest_even);
      count += d(0, i, j) == expected ? 0 : 1;
    }
  }
  return count;
}

std::string refusal(const auto& call) {
  try {
    call();
  } catch (const formats::Error& error) {
    return error.what();
  }
  return "";
}

Pair added_pair(const Unit& unit, const std::string& addend) {
  const Pair pair = {instruction_of(unit, addend), instruction_of(unit, "c")};
  emulator::add_instruction(pair.begins);
  return pair;
}

Chains each(const KRanges& ranges) {
  Chains chains;
  for (const KRange& range : ranges) chains.push_back({range});
  return chains;
}

}  // namespace

TEST_CASE("a unit without an addend gives what its arithmetic with a larger K gives") {
  Random random(11);
  for (const Unit& unit : known) {
    for (const std::string& addend : both_zeros) {
      CAPTURE(unit.what, addend);
      const Pair pair = added_pair(unit, addend);
      CHECK_FALSE(emulator::takes_addend(pair.begins));
      CHECK(emulator::can_be_chained(pair.begins));
      for (const std::int64_t k : {1, 5, 8, 16, 23, 24, 25, 40, 48, 49, 100, 200}) {
        CAPTURE(k);
        const emulator::GemmProblem x = problem_of(pair.begins, k, random);
        const KRange all = {0, k};
        CHECK(wrong(pair, "", {{all}}, x) == 0);
        const std::int64_t half = (k / 8 + (k % 8 != 0 ? 1 : 0) + 1) / 2 * 8;
        CHECK(wrong(pair, " split=2x8:ceil", each(pieces(all, half)), x) == 0);
        CHECK(wrong(pair, " lanes=2x8:ceil", each(pieces(all, half)), x) == 0);
        for (const std::int64_t interval : {16, 40})
          if (pair.begins.d != formats::fp64)
            CHECK(wrong(pair, " promote=" + std::to_string(interval), each(pieces(all, interval)),
                        x) == 0);
        Chains in_turn;  // tiles of 16 in turn
        for (const KRange& tile : pieces(all, 16)) {
          const auto turn = static_cast<std::size_t>(tile.begin / 16 % 3);
          if (in_turn.size() <= turn) in_turn.emplace_back();
          in_turn[turn].push_back(tile);
        }
        CHECK(wrong(pair, " split=3x16:round_robin", in_turn, x) == 0);
        CHECK(wrong(pair, " lanes=3x16:round_robin", in_turn, x) == 0);
        KRanges residue_first;
        if (k % 32 != 0) residue_first.push_back({0, k % 32});
        if (k >= 32) residue_first.push_back({k % 32, k});
        CHECK(wrong(pair, " residue_first=32", {residue_first}, x) == 0);
        // One tile, whose steps of 8 go to three blocks.
        const std::int64_t steps = (k + 7) / 8, share = (steps + 2) / 3 * 8;
        CHECK(wrong(pair, " stream_k=3x16x16x8", each(pieces(all, share)), x) == 0);
        const std::int64_t longer = steps / 3 * 8 + 8, more = steps % 3;
        if (steps >= 3) {
          KRanges balanced, balanced_last;
          for (std::int64_t part = 0, from = 0, last = 0; part < 3; ++part) {
            const std::int64_t to = from + (part < more ? longer : longer - 8);
            const std::int64_t end = last + (2 - part < more ? longer : longer - 8);
            balanced.push_back({from, std::min(k, to)});
            balanced_last.push_back({last, std::min(k, end)});
            from = to, last = end;
          }
          CHECK(wrong(pair, " split=3x8:balanced", each(balanced), x) == 0);
          CHECK(wrong(pair, " split=3x8:balanced_last", each(balanced_last), x) == 0);
          CHECK(wrong(pair, " stream_k=3x16x16x8:balanced", each(balanced), x) == 0);
        }
      }
    }
  }
}

TEST_CASE("a chain of fused multiply-adds without an addend is the CPU's own") {
  Random random(12);
  const Pair pair = added_pair(known[0], "0");
  const emulator::GemmProblem x = problem_of(pair.begins, 700, random);
  const CodeMatrix d = emulator::execute(plan_of(pair.begins, ""), x, 2);
  int different = 0;
  for (std::int64_t i = 0; i < d.rows; ++i) {
    for (std::int64_t j = 0; j < d.columns; ++j) {
      float sum = 0;
      for (std::int64_t k = 0; k < x.k(); ++k)
        sum = std::fma(static_cast<float>(value_of(fp32, x.a(0, i, k))),
                       static_cast<float>(value_of(fp32, x.b(0, k, j))), sum);
      different += value_of(fp32, d(0, i, j)) == static_cast<double>(sum) ? 0 : 1;
    }
  }
  CHECK(different == 0);
}

namespace {

/// A product in memory, by the instruction and any K.
struct Operands {
  std::vector<std::byte> a, b, c, d, e, a_scale, b_scale;
  emulator::MatrixProduct product;

  static std::vector<std::byte> codes(const Format& f, std::int64_t count, Random& random) {
    std::vector<std::byte> bytes(static_cast<std::size_t>(count * formats::container_bits(f) / 8));
    for (std::int64_t i = 0; i < count; ++i)
      emulator::codes_of(f, bytes.data()).set(i, code_between(f, -3, 3, random));
    return bytes;
  }
  static emulator::ConstMatrix matrix(const Format& f, const std::vector<std::byte>& bytes,
                                      std::int64_t stride) {
    return {emulator::codes_of(f, bytes.data()), stride, 1};
  }

  Operands(const MatrixInstruction& instruction, int k, bool has_c, Random& random) {
    constexpr int m = 3, n = 2;
    const int stored = emulator::stored_k(instruction, k);
    const auto scales = static_cast<int>(emulator::scales_along(instruction, k));
    a = codes(instruction.a, m * stored, random), b = codes(instruction.b, k * n, random);
    c = codes(instruction.d, m * n, random), d.resize(c.size());
    product.m = m, product.n = n, product.k = k;
    product.a = matrix(instruction.a, a, stored), product.b = matrix(instruction.b, b, n);
    product.d = {emulator::codes_of(instruction.d, d.data()), n, 1};
    product.modifiers.zero_addend = !has_c;
    if (has_c) product.c = matrix(instruction.d, c, n);
    for (int s = 0; instruction.sparsity.group_elements != 0 && s < m * stored; ++s)
      e.push_back(static_cast<std::byte>(s % 2 == 0 ? 1 : 3));
    if (!e.empty()) product.e = {{e.data(), 1, 0}, stored, 1};
    if (instruction.scale.count == 0) return;
    a_scale = codes(instruction.scale.format, m * scales, random);
    b_scale = codes(instruction.scale.format, n * scales, random);
    product.a_scale = matrix(instruction.scale.format, a_scale, scales);
    product.b_scale = matrix(instruction.scale.format, b_scale, n);
  }

  /// The unit with the K of the product.
  std::uint64_t expected(const Pair& unit, int i, int j) const {
    const MatrixInstruction& instruction = unit.begins;
    std::vector<std::uint64_t> of_a, of_b, of_a_scale, of_b_scale;
    for (int s = 0; s < emulator::stored_k(instruction, static_cast<int>(product.k)); ++s) {
      const int at = e.empty() ? 0 : static_cast<int>(product.e(i, s));
      of_a.push_back(product.a(i, s));
      of_b.push_back(product.b(emulator::dense_k(instruction.sparsity, s, at), j));
    }
    for (int s = 0; s < emulator::scales_along(instruction, product.k); ++s) {
      of_a_scale.push_back(product.a_scale(i, s));
      of_b_scale.push_back(product.b_scale(s, j));
    }
    const bool has_c = !product.modifiers.zero_addend;
    return emulator::dot(has_c ? unit.goes_on : instruction,
                         {of_a, of_b, has_c ? product.c(i, j) : 0, of_a_scale, of_b_scale});
  }
};

}  // namespace

TEST_CASE("every engine goes on where a unit without an addend ends") {
  constexpr std::array more = {
      Unit{"integers that wrap", 24, "int8 int8 int32 int32",
           "step dot addend=A into=int32 summation=integer\n"},
      Unit{"integers in blocks that saturate", 16, "int8 int8 int32 int32",
           "step dot addend=A into=int32 summation=integer terms=4 integer_overflow=saturate\n"},
      Unit{"sparse", 16, "fp16 fp16 fp32 fp32\nsparsity 4 2 1",
           "step dot addend=A into=fp32 terms=4 kept_fraction_bits=24 min_exponent=-133\n"},
      Unit{"scaled", 16, "e4m3 e4m3 fp32 fp32\nscale e8m0 2",
           "step dot addend=A into=fp32 terms=4 kept_fraction_bits=24 min_exponent=-133\n"},
  };
  std::vector<Unit> units(known.begin(), known.end());
  units.insert(units.end(), more.begin(), more.end());
  Random random(13);
  for (const Unit& unit : units) {
    for (const std::string& addend : both_zeros) {
      if (addend == "-0" && unit.formats[0] == 'i') continue;
      const Pair pair = {instruction_of(unit, addend), instruction_of(unit, "c")};
      const auto next = emulator::continuation_of(pair.begins);
      REQUIRE(next);
      for (const int k : {8, 16, 24, 32, 48, 56, 72, 200}) {
        for (const bool has_c : {false, true}) {
          for (const emulator::Engine& engine : emulator::engines()) {
            if (engine.device != nullptr) continue;
            if (!engine.accepts(pair.begins) && !engine.accepts(next->instruction)) continue;
            CAPTURE(unit.what, addend, k, has_c, engine.name);
            Operands x(pair.begins, k, has_c, random);
            emulator::multiply(engine, pair.begins, x.product, 1);
            const auto d = emulator::codes_of(pair.begins.d, std::as_const(x.d).data());
            int different = 0;
            for (int i = 0; i < 3; ++i)
              for (int j = 0; j < 2; ++j)
                different += d[i * 2 + j] == x.expected(pair, i, j) ? 0 : 1;
            CHECK(different == 0);
          }
        }
      }
    }
  }
}

TEST_CASE("where it is not known how a unit goes on, a longer chain is refused") {
  Random random(14);
  for (const Unit& unit : unknown) {
    CAPTURE(unit.what);
    const MatrixInstruction instruction = instruction_of(unit, "0");
    emulator::add_instruction(instruction);
    CHECK_FALSE(emulator::takes_addend(instruction));
    CHECK_FALSE(emulator::can_be_chained(instruction));
    // What one execution gives, missing products being zero.
    const auto execution = [&](const emulator::GemmProblem& x, std::int64_t i, std::int64_t j,
                               const KRanges& ranges) {
      std::vector<std::uint64_t> a, b;
      for (const KRange& range : ranges) {
        const auto [of_a, of_b] = factors(x, i, j, range);
        a.insert(a.end(), of_a.begin(), of_a.end()), b.insert(b.end(), of_b.begin(), of_b.end());
      }
      a.resize(static_cast<std::size_t>(unit.k)), b.resize(static_cast<std::size_t>(unit.k));
      return formats::convert(instruction.d, emulator::dot(instruction, {a, b}), fp32,
                              formats::Rounding::nearest_even);
    };
    const auto is_right = [&](const std::string& words, const Chains& chains,
                              const emulator::GemmProblem& x) {
      const CodeMatrix d = emulator::execute(plan_of(instruction, words), x, 1);
      for (std::int64_t i = 0; i < d.rows; ++i)
        for (std::int64_t j = 0; j < d.columns; ++j) {
          std::vector<std::uint64_t> parts;
          for (const KRanges& ranges : chains) parts.push_back(execution(x, i, j, ranges));
          if (d(0, i, j) != formats::convert(fp32, added(fp32, parts), instruction.d,
                                             formats::Rounding::nearest_even))
            return false;
        }
      return true;
    };
    for (const std::int64_t k : {1, 7, unit.k - 1, unit.k}) {
      const emulator::GemmProblem x = problem_of(instruction, k, random);
      CHECK(is_right("", {{{0, k}}}, x));
      CHECK(is_right(" residue_first=6", {{{0, k}}}, x));
    }
    const std::int64_t k = 3 * unit.k - 4;
    const emulator::GemmProblem x = problem_of(instruction, k, random);
    const std::string tile = std::to_string(unit.k), half = std::to_string(unit.k / 2);
    const KRanges parts = pieces({0, k}, unit.k);
    CHECK(is_right(" split=3x" + tile + ":ceil", each(parts), x));
    CHECK(is_right(" lanes=3x" + tile + ":round_robin", each(parts), x));
    CHECK(is_right(" stream_k=3x16x16x" + tile, each(parts), x));
    Chains in_turn(3);
    for (const KRange& range : pieces({0, k}, unit.k / 2))
      in_turn[static_cast<std::size_t>(range.begin / (unit.k / 2) % 3)].push_back(range);
    CHECK(is_right(" lanes=3x" + half + ":round_robin", in_turn, x));
    const std::string twice = std::to_string(2 * unit.k);
    for (const std::string& words :
         {std::string(), " split=2x" + tile + ":ceil", " lanes=2x" + half + ":round_robin",
          " residue_first=" + tile, " promote=" + twice, " stream_k=2x16x16x" + tile}) {
      CAPTURE(words);
      const std::string text =
          refusal([&] { emulator::execute(plan_of(instruction, words), x, 1); });
      CHECK(text.find("plan: chip/" + std::string(std::string_view(instruction.name)) +
                      " takes no addend") == 0);
      CHECK(text.find("its K = " + tile + "; this one has K = ") != std::string::npos);
      CHECK(text.find("probe the unit with --c, or split K into parts of at most " + tile) !=
            std::string::npos);
    }
    CHECK_FALSE(
        refusal([&] { emulator::require_product(instruction, unit.k + 1, "test"); }).empty());
    CHECK(refusal([&] { emulator::require_product(instruction, unit.k, "test"); }).empty());
    for (const emulator::Engine& engine : emulator::engines()) {
      if (engine.device != nullptr || !engine.accepts(instruction)) continue;
      CAPTURE(engine.name);
      Operands longer(instruction, 2 * unit.k, false, random),
          with_c(instruction, unit.k, true, random);
      CHECK_THROWS_AS(emulator::multiply(engine, instruction, longer.product, 1), formats::Error);
      CHECK_THROWS_AS(emulator::multiply(engine, instruction, with_c.product, 1), formats::Error);
    }
  }
  const Unit saturating = {
      "saturating", 16, "int8 int8 int32 int32",
      "step dot addend=A into=int32 summation=integer integer_overflow=saturate\n"};
  CHECK_FALSE(emulator::can_be_chained(instruction_of(saturating, "0")));
  const Unit single = {"one product", 1, "fp32 fp32 fp32 fp32",
                       "step dot addend=A into=fp32 summation=fma_chain result=nearest_even\n"};
  CHECK_FALSE(emulator::can_be_chained(instruction_of(single, "0")));
  CHECK(emulator::can_be_chained(instruction_of(single, "c")));
}

TEST_CASE("a C of another format than D ends with one execution") {
  Random random(15);
  const Unit unit = {
      "narrow C", 16, "fp16 fp16 bf16 fp32",
      "step dot addend=A into=fp32 terms=8 kept_fraction_bits=24 min_exponent=-133\n"};
  const MatrixInstruction instruction = instruction_of(unit, "c");
  emulator::add_instruction(instruction);
  const emulator::GemmProblem x = problem_of(instruction, 40, random);
  for (const char* const words : {"", " residue_first=32", " promote=32", " split=2x8:ceil"})
    CHECK(
        refusal([&] {
          emulator::execute(plan_of(instruction, words), x, 1);
        }).find("has C in bf16 and D in fp32: its executions cannot be chained (valid: K up to 16)") !=
        std::string::npos);
  // Sums of parts are added by the plan; each begins with a C of zero.
  const Pair pair = {instruction, instruction};
  CHECK(wrong(pair, " split=3x16:ceil", each(pieces({0, 40}, 16)), x) == 0);
  Operands longer(instruction, 32, false, random);
  CHECK_THROWS_AS(emulator::multiply(emulator::require_engine("reference", instruction),
                                     instruction, longer.product, 1),
                  formats::Error);
}

TEST_CASE("a later step's C is the sum so far") {
  Random random(16);
  const Unit unit = {"C last", 16, "fp32 fp32 fp32 fp32",
                     "step dot addend=0 into=fp32 summation=fma_chain result=nearest_even\n"
                     "step add addend=c other=s1 into=fp32 result=nearest_even\n"};
  const MatrixInstruction instruction = instruction_of(unit, "");
  emulator::add_instruction(instruction);
  CHECK(emulator::takes_addend(instruction));
  const emulator::GemmProblem x = problem_of(instruction, 48, random);
  CHECK(wrong({instruction, instruction}, "", {pieces({0, 48}, 16)}, x) == 0);
}

TEST_CASE("C begins the first chain alone, of units that take it") {
  Random random(17);
  const Unit& unit = known[0];
  const Pair pair = added_pair(unit, "0");
  emulator::add_instruction(pair.goes_on);
  emulator::GemmProblem x = problem_of(pair.begins, 48, random);
  x.c = random_matrix(fp32, 1, x.m(), x.n(), random);
  CHECK(refusal([&] {
          emulator::execute(plan_of(pair.begins, " add=initial"), x, 1);
        }).find("takes no addend: no chain of it begins with C") != std::string::npos);
  const CodeMatrix d = emulator::execute(plan_of(pair.goes_on, " promote=24 add=initial"), x, 1);
  for (std::int64_t i = 0; i < d.rows; ++i) {
    for (std::int64_t j = 0; j < d.columns; ++j) {
      const auto [a, b] = factors(x, i, j, {0, 24});
      const auto [more_a, more_b] = factors(x, i, j, {24, 48});
      const std::uint64_t first = emulator::dot(pair.goes_on, {a, b, x.c(0, i, j)});
      CHECK(d(0, i, j) == added(fp32, {0, first, emulator::dot(pair.begins, {more_a, more_b})}));
    }
  }
}

}  // namespace guardbit::tests
