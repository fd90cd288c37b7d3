#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <iostream>
#include <string>
#include <vector>

#include "emulator/catalogue/instruction_catalogue.hpp"
#include "emulator/engine/engines.hpp"
#include "emulator/engine/matrix_product.hpp"
#include "emulator/model/dot.hpp"
#include "formats/codec.hpp"
#include "formats/format_catalogue.hpp"
#include "tests/catch.hpp"
#include "tests/emulator/inputs/catalogue_inputs.hpp"
#include "tests/emulator/inputs/oracle_rules.hpp"
#include "tests/instruction_sets_here.hpp"

// Whole products by engines that multiply tiles of outputs: every family of inputs, any size, any
// place in memory, any number of threads.
namespace guardbit::tests {
namespace {

using emulator::Engine;
using emulator::MatrixProduct;

/// The engine that multiplies with these instruction sets; null where they cannot be tested, which
/// has then been said.
template <class Sets>
const Engine* product_engine() {
  if (!can_test(Sets::sets)) return nullptr;
  for (const Engine& engine : emulator::engines()) {
    if (engine.name != Sets::name) continue;
    REQUIRE(engine.multiply != nullptr);
    return &engine;
  }
  FAIL("no engine " << Sets::name);
  return nullptr;
}

bool same_arithmetic(const MatrixInstruction& x, const MatrixInstruction& y) {
  return x.a == y.a && x.b == y.b && x.c == y.c && x.d == y.d && x.sparsity == y.sparsity &&
         x.scale == y.scale && x.shape.k == y.shape.k &&
         std::equal(x.steps.begin(), x.steps.end(), y.steps.begin(), y.steps.end());
}

/// Whether one of them has the arithmetic of `instruction`.
bool holds(const std::vector<const MatrixInstruction*>& instructions,
           const MatrixInstruction* instruction) {
  return std::any_of(instructions.begin(), instructions.end(), [&](const MatrixInstruction* other) {
    return same_arithmetic(*other, *instruction);
  });
}

/// One instruction of each arithmetic that the engine multiplies; an engine that is here takes
/// some.
std::vector<const MatrixInstruction*> product_instructions(const Engine& engine) {
  std::vector<const MatrixInstruction*> instructions;
  for (const MatrixInstruction& instruction : emulator::catalogue())
    if (!holds(instructions, &instruction) && engine.accepts(instruction))
      instructions.push_back(&instruction);
  REQUIRE(instructions.size() > 10);
  return instructions;
}

/// A matrix of `rows` by `columns` codes in memory of its own, stored by rows or by columns, with
/// `gap` elements between lines and `misalignment` bytes before the first.
struct Stored {
  std::vector<std::byte> bytes;
  std::int64_t row_stride = 0, column_stride = 0;
  std::ptrdiff_t misalignment = 0;
  int width = 0;

  Stored(const formats::Format& f, std::int64_t rows, std::int64_t columns, bool by_columns,
         std::int64_t gap, std::ptrdiff_t misaligned)
      : row_stride(by_columns ? 1 : columns + gap),
        column_stride(by_columns ? rows + gap : 1),
        misalignment(misaligned),
        width(formats::container_bits(f) / 8) {
    const std::int64_t elements =
        (by_columns ? columns : rows) * ((by_columns ? rows : columns) + gap);
    bytes.assign(static_cast<std::size_t>(misaligned + elements * width), std::byte{0});
  }
  std::byte* at(std::int64_t i, std::int64_t j) {
    return bytes.data() + misalignment + (i * row_stride + j * column_stride) * width;
  }
};

/// How a product lies in memory.
struct Placement {
  bool a_by_columns = false, b_by_columns = false, d_by_columns = false;
  std::int64_t gap = 0;
  std::ptrdiff_t misalignment = 0;
};

/// A product whose every K of the instruction's length comes from one execution of the family's
/// inputs.
class Problem {
 public:
  Problem(const MatrixInstruction& instruction, InputFamily family, std::uint64_t seed, int m,
          int n, int k, const Placement& place)
      : instruction_(instruction),
        stored_(emulator::stored_k(instruction, k)),
        scales_(emulator::scales_along(instruction, k)),
        a_(instruction.a, m, stored_, place.a_by_columns, place.gap, place.misalignment),
        b_(instruction.b, k, n, place.b_by_columns, place.gap, place.misalignment),
        c_(instruction.c, m, n, place.d_by_columns, place.gap, place.misalignment),
        d_(instruction.d, m, n, place.d_by_columns, place.gap, place.misalignment),
        e_(formats::uint8, m, instruction.sparsity.group_elements != 0 ? stored_ : 0, false, 0, 0),
        a_scale_(instruction.scale.count != 0 ? instruction.scale.format : formats::uint8, m,
                 scales_, false, 0, 0),
        b_scale_(instruction.scale.count != 0 ? instruction.scale.format : formats::uint8, scales_,
                 n, true, 0, 0) {
    const emulator::Shape shape = {m, n, instruction.shape.k};
    for (int begin = 0; begin < k; begin += instruction.shape.k) {
      const BatchInputs x =
          batch_inputs(instruction, family, seed + static_cast<std::uint64_t>(begin), shape, 1);
      const int length = std::min(instruction.shape.k, k - begin);
      const int all = emulator::stored_k(instruction, instruction.shape.k);
      const std::int64_t before = begin / instruction.shape.k * all;
      copy(x.a, all, a_, 0, before, m, emulator::stored_k(instruction, length));
      copy(x.b, n, b_, begin, 0, length, n);
      if (begin == 0) copy(x.c, n, c_, 0, 0, m, n);
      if (instruction.sparsity.group_elements != 0)
        copy(x.e, all, e_, 0, before, m, emulator::stored_k(instruction, length));
      if (instruction.scale.count != 0) {
        const std::int64_t first = begin / instruction.shape.k * instruction.scale.count;
        const auto there = std::min<std::int64_t>(instruction.scale.count, scales_ - first);
        copy(x.a_scale, instruction.scale.count, a_scale_, 0, first, m, there);
        copy(x.b_scale, n, b_scale_, first, 0, there, n);
      }
    }
    product_.m = m;
    product_.n = n;
    product_.k = k;
    product_.a = view(instruction.a, a_);
    product_.b = view(instruction.b, b_);
    product_.c = view(instruction.c, c_);
    product_.d = {emulator::codes_of(instruction.d, d_.at(0, 0)), d_.row_stride, d_.column_stride};
    if (instruction.sparsity.group_elements != 0) product_.e = view(formats::uint8, e_);
    if (instruction.scale.count != 0) {
      product_.a_scale = view(instruction.scale.format, a_scale_);
      product_.b_scale = view(instruction.scale.format, b_scale_);
    }
  }

  std::vector<std::byte> run(const Engine& engine, const emulator::Modifiers& modifiers,
                             int threads = 1) {
    return run(engine, modifiers, product_.k, threads);
  }
  /// The product of the first k's alone.
  std::vector<std::byte> run(const Engine& engine, const emulator::Modifiers& modifiers,
                             std::int64_t k, int threads) {
    std::fill(d_.bytes.begin(), d_.bytes.end(), std::byte{0xA5});
    MatrixProduct product = modified(modifiers);
    product.k = k;
    emulator::multiply(engine, instruction_, product, threads);
    return d_.bytes;
  }
  /// D after each execution: calls visit(K so far, D), in one pass over K.
  template <class Visit>
  void run_chain(const Engine& engine, const emulator::Modifiers& modifiers, const Visit& visit) {
    const MatrixProduct whole = modified(modifiers);
    std::fill(d_.bytes.begin(), d_.bytes.end(), std::byte{0xA5});
    const int step = instruction_.shape.k;
    for (std::int64_t begin = 0, execution = 0; begin < whole.k; begin += step, ++execution) {
      const std::int64_t stored = execution * emulator::stored_k(instruction_, step),
                         scales = execution * instruction_.scale.count;
      MatrixProduct product = whole;
      product.k = std::min<std::int64_t>(step, whole.k - begin);
      product.a = whole.a.from(0, stored);
      product.b = whole.b.from(begin, 0);
      product.e = whole.e.from(0, stored);
      product.a_scale = whole.a_scale.from(0, scales);
      product.b_scale = whole.b_scale.from(scales, 0);
      if (begin != 0) {
        product.modifiers.zero_addend = false;
        product.c = view(instruction_.d, d_);
      }
      emulator::multiply(engine, instruction_, product, 0);
      visit(begin + product.k, d_.bytes);
    }
  }
  /// The same with D on top of C.
  std::vector<std::byte> run_in_place(const Engine& engine) {
    d_.bytes = c_.bytes;
    MatrixProduct product = product_;
    product.c = view(instruction_.d, d_);
    emulator::multiply(engine, instruction_, product, 1);
    return d_.bytes;
  }

 private:
  MatrixProduct modified(const emulator::Modifiers& modifiers) const {
    MatrixProduct product = product_;
    product.modifiers = modifiers;
    if (modifiers.zero_addend) product.c = {};
    return product;
  }
  void copy(const std::vector<std::byte>& from, std::int64_t from_columns, Stored& to,
            std::int64_t i0, std::int64_t j0, std::int64_t rows, std::int64_t columns) const {
    const auto width = static_cast<std::size_t>(to.width);
    for (std::int64_t i = 0; i < rows; ++i)
      for (std::int64_t j = 0; j < columns; ++j)
        std::memcpy(to.at(i0 + i, j0 + j),
                    from.data() + static_cast<std::size_t>(i * from_columns + j) * width, width);
  }
  static emulator::ConstMatrix view(const formats::Format& f, Stored& x) {
    return {emulator::codes_of(f, static_cast<const std::byte*>(x.at(0, 0))), x.row_stride,
            x.column_stride};
  }

  const MatrixInstruction& instruction_;
  std::int64_t stored_, scales_;
  Stored a_, b_, c_, d_, e_, a_scale_, b_scale_;
  MatrixProduct product_;
};

const Engine& reference() { return emulator::engines().back(); }

void report(const Engine& engine, const MatrixInstruction& instruction, InputFamily family,
            std::uint64_t seed, int m, int n, std::int64_t k,
            const emulator::Modifiers& modifiers) {
  FAIL_CHECK(engine.name << " differs: " << tests::text_of(instruction)
                         << "\ninputs: " << name_of(family) << ", seed " << seed << ", " << m << "x"
                         << n << "x" << k << ", negate a, b " << modifiers.negate_a
                         << modifiers.negate_b << ", zero addend " << modifiers.zero_addend);
}

/// The reference has no product of its own: its executions one after the other.
void compare(const Engine& engine, const MatrixInstruction& instruction, InputFamily family,
             std::uint64_t seed, int m, int n, int k, const Placement& place,
             const emulator::Modifiers& modifiers) {
  Problem problem(instruction, family, seed, m, n, k, place);
  const std::vector<std::byte> expected = problem.run(reference(), modifiers, 0);
  if (problem.run(engine, modifiers) != expected)
    report(engine, instruction, family, seed, m, n, k, modifiers);
}
/// The same of the product of every K that the reference's chain comes by, of a long one by the
/// first of them and the last: of how many.
std::int64_t compare_chain(const std::vector<const Engine*>& engines,
                           const MatrixInstruction& instruction, InputFamily family,
                           std::uint64_t seed, int m, int n, int k, const Placement& place,
                           const emulator::Modifiers& modifiers) {
  Problem chain(instruction, family, seed, m, n, k, place);
  Problem problem(instruction, family, seed, m, n, k, place);
  std::int64_t products = 0;
  chain.run_chain(reference(), modifiers,
                  [&](std::int64_t so_far, const std::vector<std::byte>& expected) {
                    if (so_far > 24 * instruction.shape.k && so_far < k) return;
                    for (const Engine* engine : engines)
                      if (problem.run(*engine, modifiers, so_far, 1) != expected)
                        report(*engine, instruction, family, seed, m, n, so_far, modifiers);
                    ++products;
                  });
  return products;
}

Placement placement(std::uint64_t turn) {
  return {(turn & 1) != 0, (turn & 2) != 0, (turn & 4) != 0, static_cast<std::int64_t>(turn % 3),
          static_cast<std::ptrdiff_t>(turn % 5)};
}
emulator::Modifiers modifiers(const MatrixInstruction& instruction, std::uint64_t turn) {
  const bool negates = !formats::is_integer(instruction.a);
  return {negates && turn % 7 == 1, negates && turn % 5 == 1, turn % 4 == 1};
}

int whole_groups(const MatrixInstruction& instruction, int k) {
  const int group = std::max(1, instruction.sparsity.group_elements);
  return (k + group - 1) / group * group;
}

}  // namespace

TEMPLATE_TEST_CASE("products equal the reference on every family", "[cpu]", Avx512, Avx2, Neon) {
  const Engine* const engine = product_engine<TestType>();
  if (engine == nullptr) return;
  std::uint64_t turn = 0;
  for (const MatrixInstruction* instruction : product_instructions(*engine)) {
    for (const InputFamily family : input_families(*instruction)) {
      const int k = whole_groups(*instruction, 1 + static_cast<int>(turn * 7 % 70));
      compare(*engine, *instruction, family, turn, 5, 17, k, placement(turn),
              modifiers(*instruction, turn));
      ++turn;
    }
  }
}

TEMPLATE_TEST_CASE("products of odd sizes equal the reference", "[cpu]", Avx512, Avx2, Neon) {
  const Engine* const engine = product_engine<TestType>();
  if (engine == nullptr) return;
  std::uint64_t turn = 0;
  int accepted = 0;
  for (const char* name : {"wgmma.mma_async.sync.aligned.m64nNk16.f32.f16.f16",
                           "wgmma.mma_async.sync.aligned.m64nNk32.f32.e4m3.e5m2",
                           "wgmma.mma_async.sync.aligned.m64nNk8.f32.tf32.tf32"}) {
    const MatrixInstruction instruction = emulator::require_instruction("sm_90", name, "test");
    if (!engine->accepts(instruction)) continue;
    ++accepted;
    for (const int m : {1, 3, 17}) {
      for (const int n : {1, 3, 17, 65}) {
        for (const int k : {1, 3, 17, 129}) {
          compare(*engine, instruction, InputFamily::raw_bits, turn, m, n, k, placement(turn),
                  modifiers(instruction, turn));
          ++turn;
        }
      }
    }
    const InputFamily narrow = InputFamily::narrow_exponents;
    compare(*engine, instruction, narrow, turn, 3, 257, 17, {}, {});
    compare(*engine, instruction, narrow, turn, 257, 3, 17, {}, {});
    compare(*engine, instruction, narrow, turn, 2, 3, 1537, {}, {});
    // Sums that wait between ranges of K, of several panels and tiles.
    compare(*engine, instruction, narrow, turn, 19, 70, 1100, {}, {});
    compare(*engine, instruction, InputFamily::raw_bits, turn, 19, 70, 600, {}, {});
  }
  CHECK(accepted > 0);
}

TEMPLATE_TEST_CASE("products of every arithmetic in odd sizes equal the reference", "[cpu]", Avx512,
                   Avx2, Neon) {
  const Engine* const engine = product_engine<TestType>();
  if (engine == nullptr) return;
  constexpr int sizes[][3] = {{257, 3, 17}, {3, 257, 1}, {17, 1, 257}, {1, 17, 3}};
  std::uint64_t turn = 0;
  for (const MatrixInstruction* instruction : product_instructions(*engine)) {
    const auto& [m, n, k] = sizes[turn % 4];
    compare(*engine, *instruction, InputFamily::raw_bits, turn, m, n, whole_groups(*instruction, k),
            placement(turn / 4), modifiers(*instruction, turn));
    ++turn;
  }
}

TEMPLATE_TEST_CASE("products do not depend on the number of threads, and D may be C", "[cpu]",
                   Avx512, Avx2, Neon) {
  const Engine* const engine = product_engine<TestType>();
  if (engine == nullptr) return;
  int accepted = 0;
  for (const char* name : {"mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32",
                           "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32",
                           "wgmma.mma_async.sync.aligned.m64nNk32.f16.e4m3.e4m3"}) {
    const MatrixInstruction instruction = emulator::require_instruction("sm_90", name, "test");
    if (!engine->accepts(instruction)) continue;
    ++accepted;
    for (const InputFamily family : {InputFamily::narrow_exponents, InputFamily::raw_bits}) {
      Problem problem(instruction, family, 5, 70, 50, 700, {});
      const std::vector<std::byte> one = problem.run(*engine, {});
      for (const int threads : {0, 2, 3, 7}) CHECK(problem.run(*engine, {}, threads) == one);
      CHECK(problem.run_in_place(*engine) == one);
    }
  }
  CHECK(accepted > 0);
}

// Two blocks, of which the second adds nothing: what the first hands on is the product rounded.
TEMPLATE_TEST_CASE("every product of two FP16 numbers is rounded to FP16", "[sweep]", Avx512, Avx2,
                   Neon) {
  const Engine* const engine = product_engine<TestType>();
  if (engine == nullptr) return;
  const MatrixInstruction instruction = emulator::require_instruction(
      "sm_80", "mma.sync.aligned.m16n8k16.row.col.f16.f16.f16.f16", "test");
  REQUIRE(engine->accepts(instruction));
  constexpr std::int64_t m = 256, n = 1 << 16, k = 16;
  std::vector<std::uint16_t> a(m * k), b(k * n), d(m * n);
  for (std::size_t j = 0; j < n; ++j) b[j] = static_cast<std::uint16_t>(j);
  std::vector<float> number_of;
  for (std::uint32_t code = 0; code < n; ++code)
    number_of.push_back(std::bit_cast<float>(
        static_cast<std::uint32_t>(formats::convert(formats::fp16, code, formats::fp32))));
  const auto view = [](const std::vector<std::uint16_t>& x, std::int64_t columns) {
    return emulator::ConstMatrix{
        emulator::codes_of(formats::fp16, reinterpret_cast<const std::byte*>(x.data())), columns,
        1};
  };
  MatrixProduct product;
  product.m = m;
  product.n = n;
  product.k = k;
  product.a = view(a, k);
  product.b = view(b, n);
  product.d = {emulator::codes_of(formats::fp16, reinterpret_cast<std::byte*>(d.data())), n, 1};
  product.modifiers.zero_addend = true;
  std::int64_t differing = 0;
  for (std::size_t first = 0; first < n; first += m) {
    for (std::size_t i = 0; i < m; ++i) a[i * k] = static_cast<std::uint16_t>(first + i);
    emulator::multiply(*engine, instruction, product, 1);
    for (std::size_t i = 0; i < m; ++i) {
      for (std::size_t j = 0; j < n; ++j) {
        const float exact = number_of[first + i] * number_of[j];
        std::uint64_t expected =
            formats::convert(formats::fp32, std::bit_cast<std::uint32_t>(exact), formats::fp16);
        if (std::isnan(exact)) expected = 0x7FFF;
        if (expected == 0x8000) expected = 0;
        differing += d[i * n + j] == expected ? 0 : 1;
      }
    }
  }
  CHECK(differing == 0);
}

// Each reference result is compared with every engine that is here, after each execution of its
// chain with a product of that K, for the reference takes nearly all the time. Several of these at
// a time, each with a GUARDBIT_SWEEP_SEED of its own, see different inputs; GUARDBIT_SWEEP_OUTPUTS
// is each one's share. What a stopped one has compared is what it has printed. GUARDBIT_SWEEP_ROWS,
// a part of the names, leaves the others out.
TEST_CASE("products equal the reference on 10^9 outputs", "[sweep]") {
  struct Swept {
    const Engine* engine;
    std::vector<const MatrixInstruction*> instructions;
    std::int64_t outputs = 0;
  };
  std::vector<Swept> swept;
  const auto sweep = [&]<class Sets>(Sets) {
    const Engine* const engine = is_here(Sets::sets) ? product_engine<Sets>() : nullptr;
    if (engine != nullptr) swept.push_back({engine, product_instructions(*engine)});
  };
  sweep(Avx512());
  sweep(Avx2());
  sweep(Neon());
  if (swept.empty()) {
    std::cout << "SKIPPED: no engine of vectors is here\n";
    return;
  }
  std::vector<const MatrixInstruction*> instructions;
  const char* const part = std::getenv("GUARDBIT_SWEEP_ROWS");
  for (const Swept& by : swept)
    for (const MatrixInstruction* instruction : by.instructions)
      if (!holds(instructions, instruction) &&
          (part == nullptr ||
           std::string_view(instruction->name).find(part) != std::string_view::npos))
        instructions.push_back(instruction);
  REQUIRE(!instructions.empty());
  const auto number = [](const char* name, std::uint64_t otherwise) {
    const char* const text = std::getenv(name);
    return text == nullptr ? otherwise : std::strtoull(text, nullptr, 10);
  };
  const std::uint64_t seed = number("GUARDBIT_SWEEP_SEED", 0), first = seed << 32;
  const auto share = static_cast<std::int64_t>(number("GUARDBIT_SWEEP_OUTPUTS", 1'000'000'000));
  std::uint64_t turn = 0;
  const auto is_done = [&](const Swept& by) { return by.outputs >= share; };
  while (!std::all_of(swept.begin(), swept.end(), is_done)) {
    for (const MatrixInstruction* instruction : instructions) {
      const auto has_its_share = [&](const Swept& by) {
        return is_done(by) || !holds(by.instructions, instruction);
      };
      if (std::all_of(swept.begin(), swept.end(), has_its_share)) continue;
      for (const InputFamily family : input_families(*instruction)) {
        const int m = 64 + static_cast<int>(turn % 9), n = 96 + static_cast<int>(turn % 17);
        const bool is_long = turn % 13 == 5;  // several ranges of K
        const int blocks = is_long ? 600 / instruction->shape.k : 1 + static_cast<int>(turn % 3);
        const int cut = std::min(instruction->shape.k - 1, static_cast<int>(turn % 4));
        const int k = whole_groups(*instruction, blocks * instruction->shape.k - cut);
        std::vector<const Engine*> engines;
        for (const Swept& by : swept)
          if (holds(by.instructions, instruction)) engines.push_back(by.engine);
        const std::int64_t outputs =
            std::int64_t{m} * n *
            compare_chain(engines, *instruction, family, first + turn + 1000, m, n, k,
                          placement(turn), modifiers(*instruction, turn));
        for (Swept& by : swept)
          if (holds(by.instructions, instruction)) by.outputs += outputs;
        ++turn;
      }
      std::cout << "seed " << seed << ", " << std::string_view(instruction->name) << ':';
      for (const Swept& by : swept)
        std::cout << ' ' << by.outputs << " outputs by " << by.engine->name;
      std::cout << std::endl;
    }
  }
}

}  // namespace guardbit::tests
