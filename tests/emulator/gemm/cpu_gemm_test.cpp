// Products by the CPU's integer dot products and fused multiply-adds against the model: every
// instruction they accept, odd sizes, strided views, threads, NaNs, infinities, saturation.

#include <algorithm>
#include <functional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "emulator/catalogue/instruction_catalogue.hpp"
#include "emulator/engine/kernels/chain/chain_gemm.hpp"
#include "emulator/engine/kernels/integer/integer_gemm.hpp"
#include "emulator/model/dot.hpp"
#include "emulator/model/mma.hpp"
#include "tests/catch.hpp"
#include "tests/emulator/inputs/input_codes.hpp"
#include "tests/instruction_sets_here.hpp"

namespace guardbit::tests {
namespace {

using emulator::MatrixInstruction;
using emulator::MatrixProduct;
using emulator::VectorSet;

/// How a matrix lies in memory.
enum class Layout { rows, columns, every_third };

struct Stored {
  std::vector<std::byte> bytes;
  std::int64_t row_stride = 0, column_stride = 0;

  template <class Draw>
  Stored(const Format& f, std::int64_t rows, std::int64_t columns, Layout layout, Draw draw) {
    const std::int64_t step = layout == Layout::every_third ? 3 : 1;
    const bool by_columns = layout == Layout::columns;
    row_stride = by_columns ? 1 : columns * step + 5;
    column_stride = by_columns ? rows + 2 : step;
    // One byte more in front: operands need no alignment.
    bytes.resize(
        static_cast<std::size_t>(1 + ((rows - 1) * row_stride + (columns - 1) * column_stride + 1) *
                                         formats::container_bits(f) / 8));
    const emulator::Codes codes = emulator::codes_of(f, bytes.data() + 1);
    for (std::int64_t i = 0; i < rows; ++i) {
      for (std::int64_t j = 0; j < columns; ++j)
        codes.set(i * row_stride + j * column_stride, draw());
    }
  }

  emulator::ConstMatrix view(const Format& f) const {
    return {emulator::codes_of(f, bytes.data() + 1), row_stride, column_stride};
  }
};

struct Size {
  int m, n, k;
};

using Draw = std::function<std::uint64_t(const Format&)>;

struct Operands {
  Stored a, b, c, d, e;
  MatrixProduct product;

  Operands(const MatrixInstruction& instruction, const Size& size, Layout layout, const Draw& draw,
           const Draw& draw_c)
      : a(instruction.a, size.m, emulator::stored_k(instruction, size.k), layout,
          [&] { return draw(instruction.a); }),
        b(instruction.b, size.k, size.n, layout, [&] { return draw(instruction.b); }),
        c(instruction.c, size.m, size.n, layout, [&] { return draw_c(instruction.c); }),
        d(instruction.d, size.m, size.n, layout, [] { return std::uint64_t{0}; }),
        e(formats::uint8, size.m, emulator::stored_k(instruction, size.k), layout,
          [&, s = 0]() mutable {
            return position(instruction, s++ % emulator::stored_k(instruction, size.k));
          }) {
    product.m = size.m;
    product.n = size.n;
    product.k = size.k;
    product.a = a.view(instruction.a);
    product.b = b.view(instruction.b);
    product.c = c.view(instruction.c);
    product.d = {emulator::codes_of(instruction.d, d.bytes.data() + 1), d.row_stride,
                 d.column_stride};
    if (instruction.sparsity.group_elements != 0) product.e = {e.view(formats::uint8)};
  }

  /// Every chunk of a group at a place of its own, in ascending order.
  static std::uint64_t position(const MatrixInstruction& instruction, int s) {
    if (instruction.sparsity.group_elements == 0) return 0;
    const int per_group = instruction.sparsity.stored_per_group / instruction.sparsity.chunk;
    return static_cast<std::uint64_t>(s % instruction.sparsity.stored_per_group /
                                          instruction.sparsity.chunk +
                                      emulator::positions(instruction.sparsity) - per_group);
  }
};

/// One output by the model, execution by execution.
std::uint64_t chained(const MatrixInstruction& instruction, const MatrixProduct& x, std::uint64_t c,
                      int i, int j) {
  std::uint64_t sum = x.modifiers.zero_addend ? 0 : c;
  const auto sign = [](const Format& f, std::uint64_t code, bool negate) {
    return negate ? code ^ formats::sign_mask(f) : code;
  };
  const int stored = emulator::stored_k(instruction, instruction.shape.k);
  for (int begin = 0; begin < x.k; begin += instruction.shape.k) {
    std::vector<std::uint64_t> a, b;
    for (int s = 0; s < stored; ++s) {
      const int at = begin / instruction.shape.k * stored + s;
      const bool there = at < emulator::stored_k(instruction, static_cast<int>(x.k));
      const int e = x.e.codes.data != nullptr && there ? static_cast<int>(x.e(i, at)) : 0;
      a.push_back(there ? sign(instruction.a, x.a(i, at), x.modifiers.negate_a) : 0);
      b.push_back(there ? sign(instruction.b,
                               x.b(begin + emulator::dense_k(instruction.sparsity, s, e), j),
                               x.modifiers.negate_b)
                        : 0);
    }
    sum = emulator::dot(instruction, {a, b, sum});
  }
  return sum;
}

using Multiply = std::function<void(const MatrixInstruction&, const MatrixProduct&, int)>;

/// Outputs that differ from the model's, of at most `samples` that are looked at; the elements
/// between those of D must stay as they were.
int mismatches(const MatrixInstruction& instruction, const Operands& x, const Multiply& multiply,
               int threads, int samples, Random& random) {
  multiply(instruction, x.product, threads);
  const emulator::ConstMatrix d = x.d.view(instruction.d);
  const auto total = static_cast<std::uint64_t>(x.product.m * x.product.n);
  int wrong = 0;
  for (int sample = 0; sample < samples; ++sample) {
    const std::uint64_t at = total <= static_cast<std::uint64_t>(samples)
                                 ? static_cast<std::uint64_t>(sample)
                                 : random.below(total);
    if (at >= total) break;
    const int i = static_cast<int>(at / static_cast<std::uint64_t>(x.product.n));
    const int j = static_cast<int>(at % static_cast<std::uint64_t>(x.product.n));
    wrong +=
        d(i, j) != chained(instruction, x.product, x.c.view(instruction.c)(i, j), i, j) ? 1 : 0;
  }
  return wrong;
}

/// Instructions that differ in anything the kernels look at.
std::vector<MatrixInstruction> distinct_instructions(
    const std::function<bool(const MatrixInstruction&)>& accepts) {
  std::vector<MatrixInstruction> instructions;
  for (const MatrixInstruction& instruction : emulator::catalogue()) {
    if (!accepts(instruction)) continue;
    const bool known =
        std::any_of(instructions.begin(), instructions.end(), [&](const MatrixInstruction& other) {
          return other.a == instruction.a && other.b == instruction.b && other.c == instruction.c &&
                 other.d == instruction.d && other.shape.k == instruction.shape.k &&
                 other.sparsity == instruction.sparsity &&
                 other.steps.list[0] == instruction.steps.list[0];
        });
    if (!known) instructions.push_back(instruction);
  }
  return instructions;
}

/// Kernels of an instruction set.
struct Implementation {
  std::function<bool(const MatrixInstruction&)> accepts;
  Multiply multiply;
};

Implementation implementation(bool (*accepts)(const MatrixInstruction&, VectorSet),
                              void (*multiply)(const MatrixInstruction&, const MatrixProduct&, int,
                                               VectorSet),
                              VectorSet set) {
  return {[=](const MatrixInstruction& instruction) { return accepts(instruction, set); },
          [=](const MatrixInstruction& instruction, const MatrixProduct& x, int threads) {
            multiply(instruction, x, threads, set);
          }};
}

template <class Sets>
Implementation integer_implementation() {
  return implementation(emulator::integer_gemm::accepts, emulator::integer_gemm::multiply,
                        Sets::vector_set);
}

template <class Sets>
Implementation chain_implementation() {
  return implementation(emulator::chain_gemm::accepts, emulator::chain_gemm::multiply,
                        Sets::vector_set);
}

/// The one of the two that takes the instruction.
template <class Sets>
Implementation implementation_for(const MatrixInstruction& instruction) {
  const Implementation integers = integer_implementation<Sets>();
  const Implementation found =
      integers.accepts(instruction) ? integers : chain_implementation<Sets>();
  REQUIRE(found.accepts(instruction));
  return found;
}

/// The bytes of a stored matrix that belong to no element.
std::set<std::byte> bytes_between(const Format& f, const Stored& x, int rows, int columns) {
  const auto width = static_cast<std::size_t>(formats::container_bits(f) / 8);
  std::vector<bool> is_element(x.bytes.size());
  for (int i = 0; i < rows; ++i) {
    for (int j = 0; j < columns; ++j) {
      const auto at = static_cast<std::size_t>(i * x.row_stride + j * x.column_stride);
      std::fill_n(is_element.begin() + static_cast<std::ptrdiff_t>(1 + at * width), width, true);
    }
  }
  std::set<std::byte> found;
  for (std::size_t at = 0; at < x.bytes.size(); ++at) {
    if (!is_element[at]) found.insert(x.bytes[at]);
  }
  return found;
}

/// Sizes with every remainder of tiles, the last execution shorter than the others.
std::vector<Size> odd_sizes(const MatrixInstruction& instruction) {
  const int group = std::max(1, instruction.sparsity.group_elements);
  const int k = instruction.shape.k;
  return {{1, 1, group}, {3, 17, k}, {17, 3, 2 * k + group}, {9, 49, 3 * k}};
}

/// Near the ends of 32 bits, or anywhere.
std::uint64_t extreme_integer(Random& random) {
  switch (random.below(4)) {
    case 0: return 0x7FFFFFFFU - random.below(70000);
    case 1: return 0x80000000U + random.below(70000);
    default: return random.bits() & 0xFFFFFFFFU;
  }
}

}  // namespace

TEMPLATE_TEST_CASE("integer products are the model's in every instruction", "[cpu]", Avx512, Avx2,
                   Neon) {
  if (!can_test(TestType::sets)) return;
  const Implementation of = integer_implementation<TestType>();
  const std::vector<MatrixInstruction> instructions = distinct_instructions(of.accepts);
  CHECK(instructions.size() > 50);
  Random random(5);
  const Draw any = [&](const Format& f) { return random.bits() & formats::code_mask(f); };
  const Draw ends = [&](const Format& f) {
    // Largest products of either sign make long runs in one direction.
    const std::uint64_t sign = formats::sign_mask(f);
    return f.has_sign ? (random.one_in(8) ? sign - 1 : sign) : formats::code_mask(f);
  };
  const Draw c = [&](const Format&) { return extreme_integer(random); };
  for (const MatrixInstruction& instruction : instructions) {
    int wrong = 0;
    int layout = 0;
    for (const Size& size : odd_sizes(instruction)) {
      for (const Draw& draw : {any, ends}) {
        const Operands x(instruction, size, static_cast<Layout>(layout++ % 3), draw, c);
        wrong += mismatches(instruction, x, of.multiply, 2, 60, random);
      }
    }
    INFO(std::string_view(instruction.name) << " on " << instruction.arch);
    CHECK(wrong == 0);
  }
}

TEMPLATE_TEST_CASE("chains of fused multiply-adds are the model's in every instruction", "[cpu]",
                   Avx512, Avx2, Neon) {
  if (!can_test(TestType::sets)) return;
  const Implementation of = chain_implementation<TestType>();
  const std::vector<MatrixInstruction> instructions = distinct_instructions(of.accepts);
  CHECK(instructions.size() >= 12);
  Random random(6);
  const Draw near = [&](const Format& f) { return code_between(f, -3, 3, random); };
  const Draw any = [&](const Format& f) { return random_code(f, random); };
  const Draw specials = [&](const Format& f) {
    return random.one_in(12) ? special_code(f, random) : code_between(f, -3, 3, random);
  };
  const Draw rare = [&](const Format& f) {
    return random.one_in(300) ? special_code(f, random) : code_between(f, -3, 3, random);
  };
  const Draw subnormal = [&](const Format& f) {
    const int middle = formats::min_exponent(f) / 2;
    return random.one_in(10) ? subnormal_code(f, random)
                             : code_between(f, middle - 30, middle + 30, random);
  };
  const Draw zeros = [&](const Format& f) { return zero_code(f, random.one_in(2)); };
  for (const MatrixInstruction& instruction : instructions) {
    int wrong = 0;
    int layout = 0;
    for (const Size& size : odd_sizes(instruction)) {
      for (const Draw& draw : {near, any, specials, rare, subnormal, zeros}) {
        Operands x(instruction, size, static_cast<Layout>(layout++ % 3), draw, draw);
        x.product.modifiers = {random.one_in(3), random.one_in(3), random.one_in(4)};
        wrong += mismatches(instruction, x, of.multiply, 2, 100, random);
      }
    }
    INFO(std::string_view(instruction.name) << " on " << instruction.arch);
    CHECK(wrong == 0);
  }
}

TEMPLATE_TEST_CASE("products larger than every block are the model's", "[cpu]", Avx512, Avx2,
                   Neon) {
  if (!can_test(TestType::sets)) return;
  struct Case {
    const char *arch, *name;
    Size size;
  };
  Random random(7);
  const Draw any = [&](const Format& f) {
    return formats::is_integer(f) ? random.bits() & formats::code_mask(f)
                                  : code_between(f, -3, 3, random);
  };
  const Draw c = [&](const Format& f) {
    return formats::is_integer(f) ? extreme_integer(random) : code_between(f, -3, 3, random);
  };
  for (const Case& x :
       {Case{"sm_90", "mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32", {257, 257, 1025}},
        Case{"sm_90", "mma.sync.aligned.m16n8k32.row.col.satfinite.s32.u8.u8.s32", {257, 65, 1100}},
        Case{"sm_90", "mma.sync.aligned.m16n8k64.row.col.s32.s4.u4.s32", {17, 4200, 513}},
        Case{"sm_90", "mma.sync.aligned.m16n8k256.row.col.s32.b1.b1.s32.xor.popc", {257, 17, 1999}},
        Case{"sm_90", "mma.sync.aligned.m16n8k16.row.col.rp.f64.f64.f64.f64", {257, 257, 257}},
        Case{"sm_90", "mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64", {3, 3100, 400}},
        Case{"cdna2", "v_mfma_f32_32x32x2f32", {257, 65, 1001}}}) {
    const MatrixInstruction instruction = emulator::require_instruction(x.arch, x.name, "test");
    const Implementation of = implementation_for<TestType>(instruction);
    const Operands operands(instruction, x.size, Layout::rows, any, c);
    CAPTURE(x.name);
    CHECK(mismatches(instruction, operands, of.multiply, 1, 300, random) == 0);
    const std::vector<std::byte> alone = operands.d.bytes;
    of.multiply(instruction, operands.product, 3);
    CHECK(operands.d.bytes == alone);
  }
}

TEMPLATE_TEST_CASE("D may be C, and what lies between the elements of D is not touched", "[cpu]",
                   Avx512, Avx2, Neon) {
  if (!can_test(TestType::sets)) return;
  Random random(8);
  for (const char* name : {"mma.sync.aligned.m16n8k32.row.col.satfinite.s32.s8.s8.s32",
                           "mma.sync.aligned.m16n8k16.row.col.rz.f64.f64.f64.f64"}) {
    const MatrixInstruction instruction = emulator::require_instruction("sm_90", name, "test");
    const Implementation of = implementation_for<TestType>(instruction);
    const Draw any = [&](const Format& f) { return finite_code(f, random); };
    Operands x(instruction, {19, 101, 70}, Layout::every_third, any, any);
    of.multiply(instruction, x.product, 2);
    const emulator::ConstMatrix apart = x.d.view(instruction.d);
    Stored both = x.c;
    MatrixProduct in_place = x.product;
    in_place.c = both.view(instruction.c);
    in_place.d = {emulator::codes_of(instruction.d, both.bytes.data() + 1), both.row_stride,
                  both.column_stride};
    of.multiply(instruction, in_place, 2);
    int wrong = 0;
    for (int i = 0; i < 19; ++i) {
      for (int j = 0; j < 101; ++j) wrong += both.view(instruction.d)(i, j) != apart(i, j) ? 1 : 0;
    }
    CAPTURE(name);
    CHECK(wrong == 0);
    CHECK(bytes_between(instruction.d, x.d, 19, 101) == std::set{std::byte{0}});
  }
}

TEMPLATE_TEST_CASE("executions of a batch are the model's", "[cpu]", Avx512, Avx2, Neon) {
  if (!can_test(TestType::sets)) return;
  Random random(10);
  for (const char* name : {"mma.sync.aligned.m16n8k32.row.col.satfinite.s32.s8.u8.s32",
                           "mma.sp::ordered_metadata.sync.aligned.m16n8k64.row.col.s32.s8.s8.s32",
                           "mma.sync.aligned.m16n8k16.row.col.rp.f64.f64.f64.f64"}) {
    const MatrixInstruction instruction = emulator::require_instruction("sm_90", name, "test");
    emulator::MatrixBatch batch;
    batch.count = 3;
    batch.shape = {5, 7, instruction.shape.k - std::max(1, instruction.sparsity.group_elements)};
    const int stored = emulator::stored_k(instruction, batch.shape.k);
    const auto codes = [&](const Format& f, int count) {
      std::vector<std::byte> bytes(
          static_cast<std::size_t>(count * formats::container_bits(f) / 8));
      for (int i = 0; i < count; ++i)
        emulator::codes_of(f, bytes.data()).set(i, random_code(f, random));
      return bytes;
    };
    const auto a = codes(instruction.a, 3 * 5 * stored),
               b = codes(instruction.b, 3 * batch.shape.k * 7);
    const auto c = codes(instruction.c, 3 * 5 * 7);
    std::vector<std::byte> e(static_cast<std::size_t>(3 * 5 * stored));
    for (std::size_t s = 0; s < e.size() && instruction.sparsity.group_elements != 0; ++s)
      e[s] = static_cast<std::byte>(
          Operands::position(instruction, static_cast<int>(s % static_cast<std::size_t>(stored))));
    auto d = c, expected = c;
    batch.a = emulator::codes_of(instruction.a, a.data());
    batch.b = emulator::codes_of(instruction.b, b.data());
    batch.c = emulator::codes_of(instruction.c, c.data());
    batch.e = {e.data(), 1, 0};
    batch.d = emulator::codes_of(instruction.d, expected.data());
    emulator::execute(instruction, batch, 0, 3);
    batch.d = emulator::codes_of(instruction.d, d.data());
    CAPTURE(name);
    constexpr auto set = TestType::vector_set;
    if (emulator::integer_gemm::accepts(instruction, set)) {
      emulator::integer_gemm::run(instruction, batch, 0, 3, set);
    } else {
      REQUIRE(emulator::chain_gemm::accepts(instruction, set));
      emulator::chain_gemm::run(instruction, batch, 0, 3, set);
    }
    CHECK(d == expected);
  }
}

TEMPLATE_TEST_CASE("two stored values at one place of a sparse row of A both count", "[cpu]",
                   Avx512, Avx2, Neon) {
  if (!can_test(TestType::sets)) return;
  Random random(9);
  const MatrixInstruction instruction = emulator::require_instruction(
      "sm_90", "mma.sp::ordered_metadata.sync.aligned.m16n8k64.row.col.s32.s8.s8.s32", "test");
  const Implementation of = implementation_for<TestType>(instruction);
  const Draw any = [&](const Format& f) { return finite_code(f, random); };
  Operands x(instruction, {5, 7, 128}, Layout::rows, any, any);
  std::fill(x.e.bytes.begin(), x.e.bytes.end(), std::byte{1});
  CHECK(mismatches(instruction, x, of.multiply, 1, 35, random) == 0);
}

}  // namespace guardbit::tests
