#include <array>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "emulator/catalogue/instruction_catalogue.hpp"
#include "emulator/gemm/gemm.hpp"
#include "emulator/model/dot.hpp"
#include "formats/support/error.hpp"
#include "tests/catch.hpp"
#include "tests/emulator/gemm/gemm_arithmetic.hpp"
#include "tests/emulator/gemm/gemm_inputs.hpp"

namespace guardbit::tests {
namespace {

using emulator::CodeMatrix;
using emulator::GemmProblem;
using formats::fp32;

TEST_CASE("operands are cut, permuted and compressed as planned") {
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
    const emulator::MatrixInstruction instruction = emulator::require_instruction(
        "sm_90", "wgmma.mma_async.sync.aligned.m64nNk8.f32.tf32.tf32", "test");
    // Runs of 12 take two instructions, the second one half empty.
    for (const std::int64_t length : {16, 12}) {
      for (const int first : {1, 0}) {
        std::string text = tf32 + " input=rna/rz:2x2:run" + std::to_string(length);
        if (first == 0) text += ":b_first";
        for (const bool is_split : {false, true}) {
          const std::string size = std::to_string(length);
          const CodeMatrix d = execute(
              words(text + (is_split ? " split=4x" + size + ":ceil" : " promote=" + size)), x);
          for (std::int64_t at = 0; at < 6; ++at) {
            std::uint64_t sum = 0;
            for (std::int64_t run = 0; run < 40; run += length) {
              const std::int64_t end = std::min<std::int64_t>(40, run + length);
              std::uint64_t partial = 0;
              for (const auto& [of_a, of_b] :
                   {std::pair{first, 1 - first}, {1 - first, first}, {0, 0}}) {
                for (std::int64_t begin = run; begin < end; begin += 8) {
                  std::vector<std::uint64_t> a, b;
                  for (std::int64_t k = begin; k < std::min(end, begin + 8); ++k) {
                    a.push_back(piece(x.a, at / 2 * 40 + k, of_a));
                    b.push_back(piece(x.b, k * 2 + at % 2, of_b));
                  }
                  partial = emulator::dot(instruction, {a, b, partial, {}, {}});
                }
              }
              sum = rounded_sum(fp32, sum, partial);
            }
            CHECK(d[at] == sum);
          }
        }
      }
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
    const emulator::MatrixInstruction instruction = emulator::require_instruction(
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
            return emulator::dot(instruction, {of_a, of_b, sum, {}, {}});
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
  SECTION("a tree is of rounded products") {
    CHECK_THROWS_AS(execute(words("simt/fma.fp32 products=tree"), x), formats::Error);
    CHECK_THROWS_AS(execute(words(tf32 + " products=tree"), x), formats::Error);
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

TEST_CASE("runs of one product of pieces end where their operands end") {
  const std::string unit = "sm_80/mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64";
  Random random(8);
  for (const std::int64_t k : {1, 6, 17, 100}) {
    CAPTURE(k);
    GemmProblem p;
    p.a = tests::random_matrix(formats::fp32, 1, 3, k, random);
    p.b = tests::random_matrix(formats::fp32, 1, k, 4, random);
    // FP64 holds the leading pieces, and zeros between runs change no sum.
    const CodeMatrix runs =
        execute(emulator::parse_plan(unit + " input=rne:2x1:run6 d=fp64", "test"), p, 1);
    const CodeMatrix whole = execute(emulator::parse_plan(unit + " d=fp64", "test"), p, 1);
    for (std::int64_t i = 0; i < whole.size(); ++i) CHECK(runs[i] == whole[i]);
  }
}

}  // namespace
}  // namespace guardbit::tests
