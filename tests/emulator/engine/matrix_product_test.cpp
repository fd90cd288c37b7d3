#include "emulator/engine/matrix_product.hpp"

#include <algorithm>
#include <array>
#include <string>
#include <utility>
#include <vector>

#include "emulator/catalogue/instruction_catalogue.hpp"
#include "emulator/catalogue/instruction_text.hpp"
#include "emulator/engine/engines.hpp"
#include "emulator/model/dot.hpp"
#include "formats/support/error.hpp"
#include "formats/tensors/storage.hpp"
#include "tests/catch.hpp"
#include "tests/emulator/inputs/input_codes.hpp"

namespace guardbit::tests {
namespace {

using emulator::MatrixInstruction;

std::vector<std::byte> random_codes(const Format& f, std::int64_t count, Random& random) {
  std::vector<std::byte> bytes(static_cast<std::size_t>(count * formats::container_bits(f) / 8));
  const emulator::Codes codes = emulator::codes_of(f, bytes.data());
  for (std::int64_t i = 0; i < count; ++i) codes.set(i, code_between(f, -3, 3, random));
  return bytes;
}

/// A product's operands in memory; B is stored column by column, C and D with gaps between rows.
struct Operands {
  static constexpr std::int64_t gap = 2;
  std::vector<std::byte> a, b, c, d, e, a_scale, b_scale;
  emulator::MatrixProduct product;

  Operands(const MatrixInstruction& instruction, int m, int n, int k, Random& random) {
    const std::int64_t stored = emulator::stored_k(instruction, k);
    const std::int64_t scales = emulator::scales_along(instruction, k);
    a = random_codes(instruction.a, m * stored, random);
    b = random_codes(instruction.b, std::int64_t{k} * n, random);
    c = random_codes(instruction.c, m * (n + gap), random);
    d.resize(static_cast<std::size_t>(m * (n + gap) * formats::container_bits(instruction.d) / 8));
    product.m = m;
    product.n = n;
    product.k = k;
    product.a = {emulator::codes_of(instruction.a, std::as_const(a).data()), stored};
    product.b = {emulator::codes_of(instruction.b, std::as_const(b).data()), 1, k};
    product.c = {emulator::codes_of(instruction.c, std::as_const(c).data()), n + gap};
    product.d = {emulator::codes_of(instruction.d, d.data()), n + gap};
    if (instruction.sparsity.group_elements != 0) {
      // Every chunk of a group at a place of its own, in ascending order.
      const int per_group = instruction.sparsity.stored_per_group / instruction.sparsity.chunk;
      for (std::int64_t s = 0; s < m * stored; ++s)
        e.push_back(static_cast<std::byte>(s % instruction.sparsity.stored_per_group /
                                               instruction.sparsity.chunk +
                                           emulator::positions(instruction.sparsity) - per_group));
      product.e = {{e.data(), 1, 0}, stored};
    }
    if (instruction.scale.count != 0) {
      a_scale = random_codes(instruction.scale.format, m * scales, random);
      b_scale = random_codes(instruction.scale.format, n * scales, random);
      product.a_scale = {
          emulator::codes_of(instruction.scale.format, std::as_const(a_scale).data()), scales};
      product.b_scale = {
          emulator::codes_of(instruction.scale.format, std::as_const(b_scale).data()), 1, scales};
    }
  }
};

/// One output of a product, execution by execution, by the model.
std::uint64_t chained(const MatrixInstruction& instruction, const emulator::MatrixProduct& x, int i,
                      int j) {
  std::uint64_t sum = x.c(i, j);
  const int stored = emulator::stored_k(instruction, instruction.shape.k);
  for (int begin = 0; begin < x.k; begin += instruction.shape.k) {
    std::vector<std::uint64_t> a, b, a_scale, b_scale;
    for (int s = 0; s < stored; ++s) {
      const std::int64_t at = begin / instruction.shape.k * stored + s;
      const bool there = at < emulator::stored_k(instruction, static_cast<int>(x.k));
      const int e = x.e.codes.data != nullptr && there ? static_cast<int>(x.e(i, at)) : 0;
      a.push_back(there ? x.a(i, at) : 0);
      b.push_back(there ? x.b(begin + emulator::dense_k(instruction.sparsity, s, e), j) : 0);
    }
    for (int s = 0; s < instruction.scale.count; ++s) {
      const std::int64_t at = begin / instruction.shape.k * instruction.scale.count + s;
      const bool there = at < emulator::scales_along(instruction, x.k);
      a_scale.push_back(there ? x.a_scale(i, at) : 0);
      b_scale.push_back(there ? x.b_scale(at, j) : 0);
    }
    sum = emulator::dot(instruction, {a, b, sum, a_scale, b_scale});
  }
  return sum;
}

/// Every engine of this machine multiplies as the model does.
void check_engines(const MatrixInstruction& instruction, Operands& operands) {
  const emulator::MatrixProduct& x = operands.product;
  for (const emulator::Engine& engine : emulator::engines()) {
    if (engine.device != nullptr || !engine.accepts(instruction)) continue;
    CAPTURE(engine.name);
    emulator::multiply(engine, instruction, x, 1);
    const auto got = emulator::codes_of(instruction.d, std::as_const(operands.d).data());
    int wrong = 0;
    for (int i = 0; i < x.m; ++i)
      for (int j = 0; j < x.n; ++j)
        wrong += got[i * (x.n + Operands::gap) + j] != chained(instruction, x, i, j) ? 1 : 0;
    CHECK(wrong == 0);
  }
}

}  // namespace

TEST_CASE("a product of any size is the model's executions one after the other") {
  struct Case {
    const char *arch, *name;
  };
  for (
      const Case& x :
      {Case{"sm_90", "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16"},
       Case{"sm_80", "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32"},
       Case{"sm_90", "mma.sync.aligned.m16n8k32.row.col.f32.e4m3.e4m3.f32"},
       Case{"sm_90", "mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32"},
       Case{"sm_90", "mma.sp::ordered_metadata.sync.aligned.m16n8k32.row.col.f32.f16.f16.f32"},
       Case{
           "sm_120",
           "mma.sync.aligned.m16n8k64.row.col.kind::mxf4nvf4.block_scale.scale_vec::4X.f32.e2m1.e2m1.f32.ue4m3"},
       Case{"cdna3", "v_mfma_f32_16x16x16_f16"}}) {
    CAPTURE(x.name);
    const MatrixInstruction instruction = emulator::require_instruction(x.arch, x.name, "test");
    Random random(3);
    const int group = std::max(1, instruction.sparsity.group_elements);
    for (const int k : {group, instruction.shape.k, 2 * instruction.shape.k + 3 * group}) {
      Operands operands(instruction, 67, 5, k, random);
      const emulator::Engine& engine = emulator::require_engine("auto", instruction);
      emulator::multiply(engine, instruction, operands.product, 2);
      const auto got = emulator::codes_of(instruction.d, std::as_const(operands.d).data());
      int wrong = 0;
      for (int i = 0; i < 67; ++i) {
        for (int j = 0; j < 5; ++j)
          wrong += got[i * (5 + Operands::gap) + j] != chained(instruction, operands.product, i, j)
                       ? 1
                       : 0;
        for (int j = 5; j < 5 + Operands::gap; ++j) wrong += got[i * 7 + j] != 0 ? 1 : 0;
      }
      CHECK(wrong == 0);
    }
  }
}

TEST_CASE("engines agree on FP16 results, wherever a zero stands") {
  Random random(5);
  for (const char* const factors : {"fp16", "e4m3"}) {
    for (const int zero : {-140, -133, -128, -127, -126, -60, -20}) {
      for (const int block : {8, 16}) {
        const MatrixInstruction instruction = emulator::parse_instruction(
            "name unit\narch chip\nshape m1n1k16\nformats " + std::string(factors) + " " + factors +
                " fp16 fp16\nstep dot addend=c into=fp16 result=nearest_even kept_fraction_bits=16 terms=" +
                std::to_string(block) + " min_exponent=" + std::to_string(zero) + "\n",
            "test");
        Operands operands(instruction, 9, 40, 48, random);
        CAPTURE(factors, zero, block);
        check_engines(instruction, operands);
      }
    }
  }
}

TEST_CASE("engines agree on the largest sums of a block, and on addends of every size") {
  Random random(6);
  constexpr std::uint64_t below_two = 0x3FFF, negative = 0x8000, infinity = 0x7C00;
  constexpr std::array<std::uint64_t, 14> addends = {
      0x3FFFFFFF, 0xBFFFFFFF, 0x00000000, 0x80000000, 0x00000001, 0x807FFFFF, 0x5D7FFFFF,
      0x5D800000, 0xDD800001, 0x7F7FFFFF, 0x7F800000, 0xFF800000, 0x7FC00000, 0x40490FDB};
  for (const int kept : {23, 24, 25, 26}) {
    for (const int block : {4, 8, 16}) {
      const MatrixInstruction instruction = emulator::parse_instruction(
          "name unit\narch chip\nshape m1n1k16\nformats fp16 fp16 fp32 fp32\n"
          "step dot addend=c into=fp32 result=toward_zero kept_fraction_bits=" +
              std::to_string(kept) + " terms=" + std::to_string(block) + " min_exponent=-133\n",
          "test");
      for (const bool alike : {true, false}) {
        Operands operands(instruction, 17, 40, 48, random);
        const auto a = emulator::codes_of(instruction.a, operands.a.data());
        const auto b = emulator::codes_of(instruction.b, operands.b.data());
        const auto c = emulator::codes_of(instruction.c, operands.c.data());
        // The first rows' addends are moderate, and their factors finite.
        for (int i = 0; i < 17 * (40 + Operands::gap); ++i) {
          const std::size_t choices = i < 8 * (40 + Operands::gap) ? 2 : addends.size();
          c.set(i, addends[random.below(choices)]);
        }
        for (int i = 0; alike && i < 17 * 48; ++i)
          a.set(i, below_two | (i / 48 % 2 == 0 ? 0 : negative));
        for (int i = 0; alike && i < 40 * 48; ++i) b.set(i, below_two);
        if (!alike) a.set(16 * 48 + 5, infinity);
        CAPTURE(kept, block, alike);
        check_engines(instruction, operands);
      }
    }
  }
}

TEST_CASE("a D of TF32 stands in the upper bits of its words, from one execution to the next") {
  const MatrixInstruction instruction = emulator::parse_instruction(
      "name unit\narch chip\nshape m1n1k16\nformats fp16 fp16 tf32 tf32\n"
      "step dot addend=c into=tf32 result=nearest_even kept_fraction_bits=16 terms=8 "
      "min_exponent=-133\n",
      "test");
  Random random(9);
  Operands operands(instruction, 9, 40, 48, random);
  for (const emulator::Engine& engine : emulator::engines()) {
    if (engine.device != nullptr || !engine.accepts(instruction)) continue;
    CAPTURE(engine.name);
    std::fill(operands.d.begin(), operands.d.end(), std::byte{0xFF});
    emulator::multiply(engine, instruction, operands.product, 1);
    const auto got = emulator::codes_of(instruction.d, std::as_const(operands.d).data());
    int wrong = 0, below = 0;
    for (int i = 0; i < 9; ++i) {
      for (int j = 0; j < 40; ++j) {
        const std::int64_t at = i * (40 + Operands::gap) + j;
        wrong += got[at] != chained(instruction, operands.product, i, j) ? 1 : 0;
        const auto word = formats::load_word<std::uint32_t>(operands.d.data() + 4 * at);
        below += (word & 0x1FFFU) != 0 ? 1 : 0;
      }
    }
    CHECK(wrong == 0);
    CHECK(below == 0);
  }
}

TEST_CASE("what cannot be a product is refused with the reason") {
  const auto refusal = [](const char* arch, const char* name, int k) {
    try {
      emulator::require_product(emulator::require_instruction(arch, name, "test"), k, "test");
    } catch (const formats::Error& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  const char* const mixed = "mma.sync.aligned.m8n8k4.row.col.f32.f16.f16.f16";
  CHECK(refusal("sm_70", mixed, 4).empty());
  CHECK(refusal("sm_70", mixed, 5).find("cannot be chained") != std::string::npos);
  CHECK(refusal("sm_90", "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16", 0).find("K") !=
        std::string::npos);
  CHECK(refusal("sm_90", "mma.sp.sync.aligned.m16n8k32.row.col.f32.f16.f16.f32", 30)
            .find("multiples of 4") != std::string::npos);
}

}  // namespace guardbit::tests
