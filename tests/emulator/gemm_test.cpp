#include "emulator/gemm.hpp"

#include <array>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "emulator/catalogue.hpp"
#include "emulator/dot.hpp"
#include "emulator/stream_k.hpp"
#include "formats/arithmetic.hpp"
#include "formats/error.hpp"
#include "tests/catch.hpp"
#include "tests/emulator/gemm_inputs.hpp"

namespace guardbit::tests {
namespace {

using emulator::CodeMatrix;
using emulator::Division;
using emulator::GemmPlan;
using emulator::GemmProblem;
using emulator::SumOrder;
using formats::fp32;

// A judge that computes one output from the words of gemm_plan.hpp, with the emulated scalar
// arithmetic of formats/ and one dot() after another. It shares no code with gemm.cpp.

std::uint64_t rounded_sum(const Format& f, std::uint64_t x, std::uint64_t y) {
  return formats::encode(f, formats::add(formats::exactly(formats::decode(f, x)),
                                         formats::exactly(formats::decode(f, y))));
}
std::uint64_t rounded_product(const Format& f, std::uint64_t x, std::uint64_t y) {
  return formats::encode(f, formats::multiply(formats::decode(f, x), formats::decode(f, y)));
}
std::uint64_t rounded_fma(const Format& f, std::uint64_t x, std::uint64_t y, std::uint64_t z) {
  return formats::encode(f,
                         formats::fused_multiply_add(formats::decode(f, x), formats::decode(f, y),
                                                     formats::decode(f, z)));
}

/// The accumulator that takes k, as `Division` says.
std::int64_t owner(const emulator::Partition& p, std::int64_t k, std::int64_t length) {
  const std::int64_t tiles = (length + p.tile - 1) / p.tile, tile = k / p.tile;
  if (p.parts == 1) return 0;
  switch (p.division) {
    case Division::ceil: return tile / ((tiles + p.parts - 1) / p.parts);
    case Division::round_robin: return tile % p.parts;
    case Division::balanced: break;
  }
  const std::int64_t parts = std::min<std::int64_t>(p.parts, tiles);
  const std::int64_t longer = tiles % parts, each = tiles / parts;
  return tile < longer * (each + 1) ? tile / (each + 1)
                                    : longer + (tile - longer * (each + 1)) / each;
}

class Judge {
 public:
  Judge(const GemmPlan& plan, const GemmProblem& x) : plan_(plan), x_(x) {
    if (plan.unit.arch != "simt")
      row_ = emulator::require_instruction(plan.unit.arch, plan.unit.instruction, "judge");
  }

  std::uint64_t output(std::int64_t g, std::int64_t i, std::int64_t j) const {
    std::map<std::int64_t, std::vector<std::int64_t>> slices;
    for (std::int64_t k = 0; k < x_.k(); ++k)
      slices[plan_.stream_k.none() ? owner(plan_.split, k, x_.k()) : worker(g, i, j, k)].push_back(
          k);
    std::vector<std::uint64_t> sums;
    for (const auto& [slice, ks] : slices) {
      std::map<std::int64_t, std::vector<std::int64_t>> lanes;
      for (std::size_t at = 0; at < ks.size(); ++at)
        lanes[owner(plan_.lanes, static_cast<std::int64_t>(at), std::ssize(ks))].push_back(ks[at]);
      std::vector<std::uint64_t> lane_sums;
      for (const auto& [lane, own] : lanes) lane_sums.push_back(promoted(g, i, j, own));
      sums.push_back(added(plan_.lanes, lane_sums));
    }
    if (plan_.split.order == SumOrder::in_place) return in_place(g, i, j, sums);
    emulator::Partition split = plan_.split;
    if (!plan_.stream_k.none()) split.order = plan_.stream_k.order;
    if (!plan_.stream_k.none()) split.sums = plan_.stream_k.sums;
    return ended(added(split, sums), addend(g, i, j), plan_.epilogue.beta);
  }

 private:
  /// The block that takes k of an output's tile: iterations are counted out to blocks one by one.
  std::int64_t worker(std::int64_t g, std::int64_t i, std::int64_t j, std::int64_t k) const {
    const emulator::StreamK& s = plan_.stream_k;
    const std::int64_t down = (x_.m() + s.tile_m - 1) / s.tile_m;
    const std::int64_t across = (x_.n() + s.tile_n - 1) / s.tile_n;
    const std::int64_t steps = (x_.k() + s.tile_k - 1) / s.tile_k,
                       tiles = x_.a.batch * down * across;
    const std::int64_t row = i / s.tile_m, column = j / s.tile_n;
    const std::int64_t tile =
        g * down * across + (s.along_m ? column * down + row : row * across + column);
    std::int64_t shared = tiles;
    if (s.tiles == emulator::StreamK::Tiles::one_tile) shared = tiles - tiles / s.blocks * s.blocks;
    if (s.tiles == emulator::StreamK::Tiles::two_tile) {
      const std::int64_t waves = tiles / s.blocks;
      shared =
          tiles == waves * s.blocks ? 0 : tiles - std::max<std::int64_t>(0, waves - 1) * s.blocks;
    }
    if (tile >= shared) return 0;
    const std::int64_t wanted = tile * steps + k / s.tile_k;
    const std::int64_t all = shared * steps;
    std::int64_t at = 0;
    for (std::int64_t block = 0;; ++block) {
      at += s.division == Division::ceil ? (all + s.blocks - 1) / s.blocks
                                         : all / s.blocks + (block < all % s.blocks ? 1 : 0);
      if (wanted < at) return block;
    }
  }

  using Ks = std::vector<std::int64_t>;

  std::uint64_t operand(const CodeMatrix& m, std::int64_t g, std::int64_t i, std::int64_t j,
                        const Format& f) const {
    return formats::convert(m.format, m(g, i, j), f, plan_.input.rounding);
  }

  std::uint64_t chain(std::int64_t g, std::int64_t i, std::int64_t j, const Ks& ks) const {
    std::uint64_t sum = 0;
    if (plan_.unit.arch == "simt") {
      for (const std::int64_t k : ks)
        sum = rounded_fma(fp32, operand(x_.a, g, i, k, fp32), operand(x_.b, g, k, j, fp32), sum);
      return sum;
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

  std::uint64_t promoted(std::int64_t g, std::int64_t i, std::int64_t j, const Ks& ks) const {
    const auto interval = static_cast<std::size_t>(plan_.promotion.interval);
    if (interval == 0) return chain(g, i, j, ks);
    std::uint64_t sum = 0;
    for (std::size_t begin = 0; begin < ks.size(); begin += interval) {
      const Ks part(
          ks.begin() + static_cast<std::ptrdiff_t>(begin),
          ks.begin() + static_cast<std::ptrdiff_t>(std::min(ks.size(), begin + interval)));
      sum = rounded_sum(fp32, sum, chain(g, i, j, part));
    }
    return sum;
  }

  static std::uint64_t added(const emulator::Partition& p, std::vector<std::uint64_t> sums) {
    if (sums.size() == 1) return sums[0];
    for (std::uint64_t& x : sums)
      x = formats::convert(p.sums, formats::convert(fp32, x, p.sums), fp32);
    if (p.order == SumOrder::descending) std::reverse(sums.begin(), sums.end());
    if (p.order == SumOrder::ascending || p.order == SumOrder::descending) {
      std::uint64_t total = sums[0];
      for (std::size_t s = 1; s < sums.size(); ++s) total = rounded_sum(fp32, total, sums[s]);
      return total;
    }
    while (sums.size() > 1) {
      std::vector<std::uint64_t> next;
      const std::size_t half = (sums.size() + 1) / 2;
      for (std::size_t s = 0; s < half; ++s) {
        const std::size_t first = p.order == SumOrder::adjacent ? 2 * s : s;
        const std::size_t second = p.order == SumOrder::adjacent ? 2 * s + 1 : s + half;
        next.push_back(second < sums.size() ? rounded_sum(fp32, sums[first], sums[second])
                                            : sums[first]);
      }
      sums = next;
    }
    return sums[0];
  }

  /// C's code in FP32; nothing where none is added.
  std::optional<std::uint64_t> addend(std::int64_t g, std::int64_t i, std::int64_t j) const {
    if (x_.c.empty() || plan_.epilogue.beta == 0) return {};
    return formats::convert(x_.c.format, x_.c(g, i, j), fp32);
  }

  std::uint64_t in_place(std::int64_t g, std::int64_t i, std::int64_t j,
                         const std::vector<std::uint64_t>& sums) const {
    std::uint64_t d = ended(sums[0], addend(g, i, j), plan_.epilogue.beta);
    for (std::size_t s = 1; s < sums.size(); ++s)
      d = ended(sums[s], formats::convert(plan_.epilogue.output, d, fp32), 1);
    return d;
  }

  std::uint64_t ended(std::uint64_t sum, std::optional<std::uint64_t> added, double weight) const {
    const emulator::Epilogue& e = plan_.epilogue;
    const auto code = [](double x) {
      return formats::convert(formats::fp64, std::bit_cast<std::uint64_t>(x), fp32);
    };
    std::uint64_t result = 0;
    const std::uint64_t alpha = code(e.alpha), beta = code(weight);
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
          result = rounded_sum(fp32, product, addend);
          break;
        default:
          result = rounded_sum(
              fp32, formats::convert(e.output, formats::convert(fp32, product, e.output), fp32),
              addend);
      }
    }
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
      {{"sm_90", "wgmma.mma_async.sync.aligned.m64nNk16.f32.f16.f16"}, formats::fp16},
      {{"sm_80", "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32"}, formats::bf16},
      {{"sm_90", "wgmma.mma_async.sync.aligned.m64nNk8.f32.tf32.tf32"}, fp32},
      {{"sm_90", "wgmma.mma_async.sync.aligned.m64nNk32.f32.e4m3.e4m3"}, formats::e4m3}};
  for (int round = 0; round < 160; ++round) {
    const auto& [unit, format] = units[random.below(units.size())];
    GemmPlan plan = random_plan(random);
    plan.unit = unit;
    plan.input = {plan.input.rounding};
    plan.convolution = {};
    plan.loads = {};
    plan.promotion.adder = emulator::Promotion::Adder::add;
    if (plan.promotion.interval != 0) plan.residue_first = 0;
    if (plan.promotion.interval != 0) plan.promotion.interval = 32;
    plan.epilogue.compute = fp32;
    if (plan.epilogue.addition == emulator::Epilogue::Addition::initial)
      plan.epilogue.addition = emulator::Epilogue::Addition::separate;
    plan.epilogue.output = random.one_in(2) ? fp32 : formats::fp16;
    const int m = random.between(1, 5), n = random.between(1, 5), k = random.between(1, 150);
    const int batch = random.between(1, 2);
    GemmProblem x;
    x.a = random_matrix(format, batch, m, k, random);
    x.b = random_matrix(format, batch, k, n, random);
    if (random.one_in(2)) x.c = random_matrix(plan.epilogue.output, batch, m, n, random);
    check(plan, x);
  }
}

TEST_CASE("a small product of each special ingredient") {
  Random random(82);
  const auto words = [](const std::string& text) { return emulator::parse_plan(text, "test"); };
  GemmProblem x;
  x.a = random_matrix(fp32, 1, 3, 40, random);
  x.b = random_matrix(fp32, 1, 40, 2, random);
  const std::string tf32 = "sm_90/wgmma.mma_async.sync.aligned.m64nNk8.f32.tf32.tf32";

  SECTION("pieces restore what one rounding loses") {
    const CodeMatrix exact = execute(words("simt/fma.fp64 compute=fp64 d=fp64"), x);
    const auto error = [&](const std::string& input) {
      const CodeMatrix d = execute(words(tf32 + " input=" + input + " d=fp64 compute=fp64"), x);
      double largest = 0;
      for (std::int64_t i = 0; i < d.size(); ++i)
        largest = std::max(
            largest, std::fabs(value_of(formats::fp64, d[i]) - value_of(formats::fp64, exact[i])));
      return largest;
    };
    CHECK(error("rne:2x2") < error("rne") / 100);
    CHECK(error("rz") > error("rne"));
  }
  SECTION("runs of K take one pair of pieces after the other") {
    using formats::Rounding;
    const auto piece = [&](const CodeMatrix& m, std::int64_t at, int rank) {
      const std::uint64_t big =
          formats::convert(fp32, m[at], formats::tf32, Rounding::nearest_away);
      if (rank == 0) return big;
      const double rest = value_of(fp32, m[at]) - value_of(formats::tf32, big);
      return formats::convert(formats::fp64, std::bit_cast<std::uint64_t>(rest), formats::tf32,
                              Rounding::toward_zero);
    };
    const CodeMatrix d = execute(words(tf32 + " input=rna/rz:2x2:run16 promote=16"), x);
    const emulator::MatrixInstruction row = emulator::require_instruction(
        "sm_90", "wgmma.mma_async.sync.aligned.m64nNk8.f32.tf32.tf32", "test");
    for (std::int64_t at = 0; at < 6; ++at) {
      std::uint64_t sum = 0;
      for (std::int64_t run = 0; run < 40; run += 16) {
        std::uint64_t partial = 0;
        for (const auto& [of_a, of_b] : {std::pair{1, 0}, {0, 1}, {0, 0}}) {
          for (std::int64_t begin = run; begin < std::min<std::int64_t>(40, run + 16); begin += 8) {
            std::vector<std::uint64_t> a, b;
            for (std::int64_t k = begin; k < begin + 8; ++k) {
              a.push_back(piece(x.a, at / 2 * 40 + k, of_a));
              b.push_back(piece(x.b, k * 2 + at % 2, of_b));
            }
            partial = emulator::dot(row, {a, b, partial, {}, {}});
          }
        }
        sum = rounded_sum(fp32, sum, partial);
      }
      CHECK(d[at] == sum);
    }
  }
  SECTION("scaled rests have a chain of their own") {
    // In FP16 the unscaled rest of a number near 2^-14 is lost; scaled by 2^11 it is not.
    const auto value = [](const CodeMatrix& m, std::int64_t at) {
      return value_of(m.format, m[at]);
    };
    const auto pieces = [&](const CodeMatrix& m) {
      std::array<CodeMatrix, 2> result = {
          emulator::make_matrix(formats::fp16, 1, m.rows, m.columns),
          emulator::make_matrix(formats::fp16, 1, m.rows, m.columns)};
      for (std::int64_t at = 0; at < m.size(); ++at) {
        result[0].set(at, formats::convert(fp32, m[at], formats::fp16));
        const double rest = (value(m, at) - value(result[0], at)) * 2048;
        result[1].set(
            at, formats::convert(formats::fp64, std::bit_cast<std::uint64_t>(rest), formats::fp16));
      }
      return result;
    };
    const auto a = pieces(x.a), b = pieces(x.b);
    const std::string unit = "sm_90/wgmma.mma_async.sync.aligned.m64nNk16.f32.f16.f16";
    const CodeMatrix d = execute(words(unit + " input=rne:2x2:scaled11 promote=16"), x);
    const emulator::MatrixInstruction row = emulator::require_instruction(
        "sm_90", "wgmma.mma_async.sync.aligned.m64nNk16.f32.f16.f16", "test");
    for (std::int64_t i = 0; i < 3; ++i) {
      for (std::int64_t j = 0; j < 2; ++j) {
        std::uint64_t leading = 0, rest = 0;
        for (std::int64_t begin = 0; begin < 40; begin += 16) {
          const auto dot = [&](const CodeMatrix& p, const CodeMatrix& q, std::uint64_t sum) {
            std::vector<std::uint64_t> of_a, of_b;
            for (std::int64_t k = begin; k < std::min<std::int64_t>(40, begin + 16); ++k) {
              of_a.push_back(p(0, i, k));
              of_b.push_back(q(0, k, j));
            }
            return emulator::dot(row, {of_a, of_b, sum, {}, {}});
          };
          leading = rounded_sum(fp32, leading, dot(a[0], b[0], 0));
          rest = dot(a[0], b[1], dot(a[1], b[0], rest));
        }
        CHECK(d(0, i, j) == rounded_fma(fp32, rest, 0x3A000000, leading));  // 2^-11
      }
    }
  }
  SECTION("slices are integers below the line's greatest number") {
    x.a = random_matrix(formats::fp64, 1, 3, 40, random, -9, 2);
    x.b = random_matrix(formats::fp64, 1, 40, 2, random, -9, 2);
    const std::string unit = "sm_90/wgmma.mma_async.sync.aligned.m64nNk32.s32.s8.s8";
    for (const bool grouped : {false, true}) {
      const int slices = 4;
      const CodeMatrix d = execute(words(unit + " input=rz:4x4:" + (grouped ? "grouped_" : "") +
                                         "slices compute=fp64 d=fp64"),
                                   x);
      for (std::int64_t i = 0; i < 3; ++i) {
        for (std::int64_t j = 0; j < 2; ++j) {
          int ea = -99, eb = -99;
          const auto of_a = [&](std::int64_t k) { return value_of(formats::fp64, x.a(0, i, k)); };
          const auto of_b = [&](std::int64_t k) { return value_of(formats::fp64, x.b(0, k, j)); };
          for (std::int64_t k = 0; k < 40; ++k) {
            ea = std::max(ea, std::ilogb(of_a(k)) + 1);
            eb = std::max(eb, std::ilogb(of_b(k)) + 1);
          }
          const auto slice = [&](double number, int exponent, int s) {
            const auto all = static_cast<std::int64_t>(
                std::ldexp(std::fabs(number), 7 * slices - exponent));  // truncated
            const std::int64_t part = (all >> (7 * (slices - 1 - s))) & 127;
            return number < 0 ? -part : part;
          };
          double sum = 0;
          for (int rank = slices - 1; rank >= 0; --rank) {
            std::int64_t group = 0;
            for (int s = rank; s >= 0; --s) {
              std::int64_t product = 0;
              for (std::int64_t k = 0; k < 40; ++k)
                product += slice(of_a(k), ea, s) * slice(of_b(k), eb, rank - s);
              group += product;
              if (!grouped)
                sum += std::ldexp(static_cast<double>(product), ea + eb - 7 * (rank + 2));
            }
            if (grouped) sum += std::ldexp(static_cast<double>(group), ea + eb - 7 * (rank + 2));
          }
          CHECK(value_of(formats::fp64, d(0, i, j)) == sum);
        }
      }
    }
    x.a.set(40, 0x7ff0000000000000);  // an infinity: nothing of its row
    const CodeMatrix d = execute(words(unit + " input=rz:4x4:slices compute=fp64 d=fp64"), x);
    for (std::int64_t j = 0; j < 2; ++j) {
      CHECK(std::isnan(value_of(formats::fp64, d(0, 1, j))));
      CHECK(std::isfinite(value_of(formats::fp64, d(0, 2, j))));
    }
    CHECK_THROWS_AS(execute(words("simt/fma.fp32 input=rz:2x2:slices"), x), formats::Error);
  }
  SECTION("loads permute K") {
    // The permutation by hand: tile 2 x 4, one element of each lane to each instruction.
    GemmProblem permuted = x;
    for (std::int64_t k = 0; k < 40; ++k) {
      const std::int64_t from = k / 8 * 8 + k % 2 * 4 + k % 8 / 2;
      for (std::int64_t i = 0; i < 3; ++i) permuted.a.set(i * 40 + k, x.a(0, i, from));
      for (std::int64_t j = 0; j < 2; ++j) permuted.b.set(k * 2 + j, x.b(0, from, j));
    }
    CHECK(execute(words("simt/fma.fp32 loads=2x4:1"), x).bytes ==
          execute(words("simt/fma.fp32"), permuted).bytes);
  }
  SECTION("scales of blocks enter where the promotion says") {
    x.a = random_matrix(formats::e4m3, 1, 2, 64, random);
    x.b = random_matrix(formats::e4m3, 1, 64, 2, random);
    x.scale_a = random_matrix(fp32, 1, 2, 2, random, 0, 0);
    x.scale_b = random_matrix(fp32, 1, 2, 1, random, 0, 0);
    x.scale_k = 32;
    const std::string unit = "sm_90/wgmma.mma_async.sync.aligned.m64nNk32.f32.e4m3.e4m3";
    const CodeMatrix d = execute(words(unit + " promote=32:scaled_fma"), x);
    const emulator::MatrixInstruction row = emulator::require_instruction(
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
          sum = rounded_fma(fp32, emulator::dot(row, {a, b, 0, {}, {}}),
                            rounded_product(fp32, x.scale_a(0, i, block), x.scale_b(0, block, 0)),
                            sum);
        }
        CHECK(d(0, i, j) == sum);
      }
    }
  }
  SECTION("a chain that begins with C") {
    x.c = random_matrix(fp32, 1, 3, 2, random);
    const CodeMatrix d = execute(words("sm_80/mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 "
                                       "input=rz add=initial"),
                                 x);
    const emulator::MatrixInstruction row = emulator::require_instruction(
        "sm_80", "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32", "test");
    std::uint64_t sum = x.c(0, 2, 1);
    for (std::int64_t begin = 0; begin < 40; begin += 8) {
      std::vector<std::uint64_t> a, b;
      for (std::int64_t k = begin; k < begin + 8; ++k) {
        a.push_back(x.a(0, 2, k) >> 13);
        b.push_back(x.b(0, k, 1) >> 13);
      }
      sum = emulator::dot(row, {a, b, sum, {}, {}});
    }
    CHECK(d(0, 2, 1) == sum);
  }
  SECTION("two to four: zeros of A do not count") {
    x.a = random_matrix(formats::fp16, 1, 2, 64, random);
    x.b = random_matrix(formats::fp16, 1, 64, 2, random);
    for (std::int64_t i = 0; i < x.a.size(); ++i)
      if (i % 4 == 1 || i % 4 == 2) x.a.set(i, 0);
    GemmProblem stored;  // the same products without the zeros
    stored.a = emulator::make_matrix(formats::fp16, 1, 2, 32);
    stored.b = emulator::make_matrix(formats::fp16, 1, 32, 2);
    for (std::int64_t s = 0; s < 32; ++s) {
      const std::int64_t k = s / 2 * 4 + (s % 2) * 3;
      for (std::int64_t i = 0; i < 2; ++i) {
        stored.a.set(i * 32 + s, x.a(0, i, k));
        stored.b.set(s * 2 + i, x.b(0, k, i));
      }
    }
    CHECK(execute(words("sm_90/wgmma.mma_async.sp.sync.aligned.m64nNk32.f32.f16.f16"), x).bytes ==
          execute(words("sm_90/wgmma.mma_async.sync.aligned.m64nNk16.f32.f16.f16"), stored).bytes);
    x.a.set(1, 0x3c00);
    CHECK_THROWS_AS(execute(words("sm_90/wgmma.mma_async.sp.sync.aligned.m64nNk32.f32.f16.f16"), x),
                    formats::Error);
  }
}

TEST_CASE("a convolution is the sum over its filter") {
  Random random(83);
  emulator::Convolution x;
  x.n = 2, x.c = 6, x.h = 7, x.w = 6, x.o = 4, x.r = 3, x.s = 2, x.groups = 2;
  x.padding_h = 1, x.padding_w = 0, x.stride_h = 2, x.stride_w = 1, x.dilation_h = 1,
  x.dilation_w = 2;
  x.p = (x.h + 2 - 2 - 1) / 2 + 1;
  x.q = (x.w - 2 - 1) / 1 + 1;
  const CodeMatrix a = random_matrix(formats::int8, 1, 1, x.n * x.c * x.h * x.w, random);
  const CodeMatrix b = random_matrix(formats::int8, 1, 1, x.o * 3 * x.r * x.s, random);
  const auto value = [](const CodeMatrix& m, std::int64_t at) {
    return static_cast<std::int64_t>(static_cast<std::int8_t>(m[at]));
  };
  using Walk = emulator::ConvolutionOrder::Walk;
  for (const emulator::ConvolutionOrder order : {emulator::ConvolutionOrder{Walk::rsc, 0, 1},
                                                 {Walk::crs, 0, 1},
                                                 {Walk::src, 0, 8},
                                                 {Walk::rsc, 2, 1}}) {
    const GemmProblem problem = lower(x, a, b, order);
    GemmPlan plan = emulator::parse_plan("simt/mad.int32 compute=int32 d=int32", "test");
    const CodeMatrix d = raise_output(x, execute(plan, problem));
    CHECK(lower_output(x, d).bytes == execute(plan, problem).bytes);
    std::int64_t wrong = 0, at = 0;
    for (std::int64_t n = 0; n < x.n; ++n)
      for (std::int64_t o = 0; o < x.o; ++o)
        for (std::int64_t p = 0; p < x.p; ++p)
          for (std::int64_t q = 0; q < x.q; ++q, ++at) {
            std::int64_t sum = 0;
            for (std::int64_t c = 0; c < 3; ++c)
              for (std::int64_t r = 0; r < x.r; ++r)
                for (std::int64_t s = 0; s < x.s; ++s) {
                  const std::int64_t h = p * 2 - 1 + r, w = q + 2 * s;
                  if (h < 0 || h >= x.h || w >= x.w) continue;
                  sum += value(a, ((n * x.c + o / 2 * 3 + c) * x.h + h) * x.w + w) *
                         value(b, ((o * 3 + c) * x.r + r) * x.s + s);
                }
            wrong += static_cast<std::uint32_t>(sum) != d[at] ? 1 : 0;
          }
    CHECK(wrong == 0);
  }
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

TEST_CASE("stream-K cuts the tiles where shares end") {
  using emulator::KRange;
  using emulator::StreamK;
  const auto cuts = [](StreamK x, std::int64_t tiles, std::int64_t tile) {
    return emulator::stream_k_cuts(x, tiles, tile, 100);
  };
  // 3 tiles of 7 iterations of 16: 21 iterations over 4 blocks, in shares of 6 and at last 3.
  StreamK x;
  x.blocks = 4, x.tile_k = 16;
  CHECK(cuts(x, 3, 0) == std::vector<KRange>{{0, 96}, {96, 100}});
  CHECK(cuts(x, 3, 1) == std::vector<KRange>{{0, 80}, {80, 100}});
  CHECK(cuts(x, 3, 2) == std::vector<KRange>{{0, 64}, {64, 100}});
  // Evenly: 6, 5, 5, 5.
  x.division = Division::balanced;
  CHECK(cuts(x, 3, 1) == std::vector<KRange>{{0, 64}, {64, 100}});
  CHECK(cuts(x, 3, 2) == std::vector<KRange>{{0, 32}, {32, 100}});
  // 9 tiles on 4 blocks: the last wave of 1, or the last two of 5, are shared.
  x.tiles = StreamK::Tiles::one_tile;
  CHECK(cuts(x, 9, 0).size() == 4);
  CHECK(cuts(x, 9, 1) == std::vector<KRange>{{0, 100}});
  x.tiles = StreamK::Tiles::two_tile;
  CHECK(cuts(x, 9, 0) == std::vector<KRange>{{0, 100}});
  CHECK(cuts(x, 9, 1) == std::vector<KRange>{{0, 32}, {32, 100}});
  CHECK(cuts(x, 9, 5) == std::vector<KRange>{{0, 100}});
  CHECK(cuts(x, 8, 7) == std::vector<KRange>{{0, 100}});
}

}  // namespace
}  // namespace guardbit::tests
