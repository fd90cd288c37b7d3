#include <algorithm>
#include <array>
#include <cfenv>
#include <cstring>

#ifdef __SSE2__
#include <immintrin.h>
#endif

#include "emulator/catalogue/instruction_catalogue.hpp"
#include "emulator/engine/engines.hpp"
#include "formats/support/error.hpp"
#include "tests/catch.hpp"
#include "tests/emulator/inputs/catalogue_inputs.hpp"
#include "tests/emulator/inputs/oracle_rules.hpp"
#include "tests/instruction_sets_here.hpp"

// Engines agree bit for bit, and a batch means what MatrixBatch says it means. What an engine must
// hold is a case of its own for each, which shows as skipped where the engine is not.
namespace {

using namespace guardbit;
using namespace guardbit::tests;
using emulator::Engine;
using emulator::MatrixBatch;
using emulator::Modifiers;

/// The engine "cpu" takes what multiplies and adds as soon as there is AVX2 with FMA.
struct Silicon {
  static constexpr std::string_view name = "cpu";
  static constexpr auto sets = formats::InstructionSets::avx2;
};
struct Reference {
  static constexpr std::string_view name = "reference";
  static constexpr auto sets = formats::InstructionSets::baseline;
};

constexpr std::byte untouched{0xA5};
constexpr std::size_t guard = 64;

const Engine& reference() { return emulator::engines().back(); }

const Engine& engine_named(std::string_view name) {
  return *std::find_if(emulator::engines().begin(), emulator::engines().end(),
                       [&](const Engine& engine) { return engine.name == name; });
}

/// D of a batch, at any alignment, between guard bytes that nobody may write.
class Results {
 public:
  Results(const MatrixInstruction& instruction, const BatchInputs& inputs)
      : begin_(guard + static_cast<std::size_t>(inputs.misalignment)) {
    const auto outputs = static_cast<std::size_t>(inputs.count * inputs.shape.m * inputs.shape.n);
    const std::size_t width = static_cast<std::size_t>(formats::container_bits(instruction.d) / 8);
    size_ = outputs * width;
    bytes_.assign(begin_ + size_ + guard, untouched);
  }

  std::byte* data() { return bytes_.data() + begin_; }
  std::vector<std::byte> codes() const {
    return {bytes_.begin() + static_cast<std::ptrdiff_t>(begin_),
            bytes_.begin() + static_cast<std::ptrdiff_t>(begin_ + size_)};
  }
  bool guards_intact() const {
    const auto is_untouched = [](std::byte x) { return x == untouched; };
    const auto first = bytes_.begin() + static_cast<std::ptrdiff_t>(begin_);
    return std::all_of(bytes_.begin(), first, is_untouched) &&
           std::all_of(first + static_cast<std::ptrdiff_t>(size_), bytes_.end(), is_untouched);
  }

 private:
  std::size_t begin_ = 0, size_ = 0;
  std::vector<std::byte> bytes_;
};

std::vector<std::byte> execute(const Engine& engine, const MatrixInstruction& instruction,
                               const BatchInputs& inputs, const Modifiers& modifiers,
                               int threads = 1) {
  Results results(instruction, inputs);
  MatrixBatch batch = inputs.batch(instruction, results.data());
  batch.modifiers = modifiers;
  if (modifiers.zero_addend) batch.c = {};  // it is not read
  emulator::run_batch(engine, instruction, batch, threads);
  CHECK(results.guards_intact());
  return results.codes();
}

std::string text_of(const Shape& s) {
  return std::to_string(s.m) + "x" + std::to_string(s.n) + "x" + std::to_string(s.k);
}

/// The engine gives what the reference gives.
void compare(const Engine& engine, const MatrixInstruction& instruction, InputFamily family,
             std::uint64_t seed, const Shape& shape, std::int64_t count,
             std::ptrdiff_t misalignment, const Modifiers& modifiers) {
  const BatchInputs inputs = batch_inputs(instruction, family, seed, shape, count, misalignment);
  const std::vector<std::byte> expected = execute(reference(), instruction, inputs, modifiers);
  const std::vector<std::byte> got = execute(engine, instruction, inputs, modifiers);
  if (got == expected) return;
  const auto width = formats::container_bits(instruction.d) / 8;
  const auto at = std::mismatch(got.begin(), got.end(), expected.begin()).first - got.begin();
  FAIL_CHECK(engine.name << " differs: " << tests::text_of(instruction)
                         << "\ninputs: " << name_of(family) << ", seed " << seed << ", " << count
                         << " of " << text_of(shape) << ", output " << at / width
                         << ", negate a, b " << modifiers.negate_a << modifiers.negate_b
                         << ", zero addend " << modifiers.zero_addend);
}

bool same_computation(const MatrixInstruction& x, const MatrixInstruction& y) {
  return x.a == y.a && x.b == y.b && x.c == y.c && x.d == y.d && x.sparsity == y.sparsity &&
         x.scale == y.scale && x.shape.k == y.shape.k &&
         std::equal(x.steps.begin(), x.steps.end(), y.steps.begin(), y.steps.end());
}

/// One instruction of each computation that the engine takes; an engine that is here takes some.
std::vector<const MatrixInstruction*> instructions_of(const Engine& engine) {
  std::vector<const MatrixInstruction*> instructions;
  for (const MatrixInstruction& instruction : emulator::catalogue()) {
    const bool seen = std::any_of(
        instructions.begin(), instructions.end(),
        [&](const MatrixInstruction* other) { return same_computation(*other, instruction); });
    if (!seen && engine.accepts(instruction)) instructions.push_back(&instruction);
  }
  REQUIRE(instructions.size() > 1);
  return instructions;
}

/// All combinations; PTX negates floating operands only.
Modifiers modifiers_of(const MatrixInstruction& instruction, std::size_t index) {
  const bool floating = !formats::is_integer(instruction.a);
  return {floating && (index & 1) != 0, floating && (index & 2) != 0, (index & 4) != 0};
}

Shape closed_shape(const MatrixInstruction& instruction, int open_m, int open_n) {
  Shape shape = instruction.shape;
  if (shape.m == 0) shape.m = open_m;
  if (shape.n == 0) shape.n = open_n;
  return shape;
}

constexpr std::array<std::int64_t, 3> counts = {1, 3, 17};

void compare_small_batches(const Engine& engine, int rounds) {
  std::size_t turn = 0;
  for (const MatrixInstruction* instruction : instructions_of(engine)) {
    for (const InputFamily family : input_families(*instruction)) {
      for (int round = 0; round < rounds; ++round, ++turn) {
        const Shape shape = {1 + static_cast<int>(turn % 3), 1 + static_cast<int>(turn % 5),
                             instruction->shape.k};
        const auto misalignment = static_cast<std::ptrdiff_t>(turn % 2 == 0 ? 0 : turn % 7);
        compare(engine, *instruction, family, turn, shape, counts[turn % counts.size()],
                misalignment, modifiers_of(*instruction, turn));
      }
    }
  }
}

}  // namespace

TEMPLATE_TEST_CASE("engines equal the reference on every family", "[cpu]", Avx512, Avx2, Neon,
                   Portable, Silicon) {
  if (can_test(TestType::sets)) compare_small_batches(engine_named(TestType::name), 1);
}

TEMPLATE_TEST_CASE("engines equal the reference on every family, many batches", "[sweep]", Avx512,
                   Avx2, Neon, Portable, Silicon) {
  if (can_test(TestType::sets)) compare_small_batches(engine_named(TestType::name), 200);
}

TEMPLATE_TEST_CASE("engines equal the reference on whole instructions", "[cpu]", Avx512, Avx2, Neon,
                   Portable, Silicon) {
  if (!can_test(TestType::sets)) return;
  const Engine& engine = engine_named(TestType::name);
  std::size_t turn = 0;
  for (const MatrixInstruction* instruction : instructions_of(engine)) {
    const std::vector<InputFamily> families = input_families(*instruction);
    compare(engine, *instruction, families[turn % families.size()], turn,
            closed_shape(*instruction, 32, 8), 1, 0, {});
    ++turn;
  }
}

TEMPLATE_TEST_CASE("engines equal the reference on every width of wgmma", "[cpu]", Avx512, Avx2,
                   Neon, Portable) {
  if (!can_test(TestType::sets)) return;
  const Engine& engine = engine_named(TestType::name);
  int accepted = 0;
  for (const char* name : {"wgmma.mma_async.sync.aligned.m64nNk16.f32.f16.f16",
                           "wgmma.mma_async.sync.aligned.m64nNk32.f32.e4m3.e5m2",
                           "wgmma.mma_async.sp.sync.aligned.m64nNk16.f32.tf32.tf32",
                           "wgmma.mma_async.sync.aligned.m64nNk32.s32.s8.u8.satfinite"}) {
    const MatrixInstruction instruction = emulator::require_instruction("sm_90", name, "test");
    if (!engine.accepts(instruction)) continue;
    ++accepted;
    for (const int n : {8, 24, 104, 256}) {
      compare(engine, instruction, n == 24 ? InputFamily::sparse_zeros : InputFamily::raw_bits, 5,
              {2, n, instruction.shape.k}, 3, 0, {});
    }
    compare(engine, instruction, InputFamily::raw_bits, 6, {64, 8, instruction.shape.k}, 1, 0, {});
  }
  CHECK(accepted > 0);
}

TEMPLATE_TEST_CASE("engines equal the reference on dot products of any length", "[cpu]", Avx512,
                   Avx2, Neon, Portable, Silicon) {
  if (!can_test(TestType::sets)) return;
  const Engine& engine = engine_named(TestType::name);
  std::size_t turn = 0;
  for (const MatrixInstruction* instruction : instructions_of(engine)) {
    const int step = std::max(1, instruction->sparsity.group_elements);
    for (const int part : {1, 2, 3, 5, 7}) {
      const int k = std::min(instruction->shape.k,
                             step * (part < 5 ? part : instruction->shape.k / step - part + 4));
      if (k <= 0) continue;
      const std::vector<InputFamily> families = input_families(*instruction);
      compare(engine, *instruction, families[turn % families.size()], turn, {1, 1, k}, 17, 0,
              modifiers_of(*instruction, turn));
      ++turn;
    }
  }
}

TEMPLATE_TEST_CASE("engines do not depend on the caller's floating-point environment", "[cpu]",
                   Avx512, Avx2, Neon, Portable, Silicon) {
  if (!can_test(TestType::sets)) return;
  const Engine& engine = engine_named(TestType::name);
  std::fenv_t saved;
  std::fegetenv(&saved);
  std::fesetround(FE_UPWARD);
#ifdef __SSE2__
  _mm_setcsr(_mm_getcsr() | 0x8040);  // subnormal operands and results are zero
#endif
  std::size_t turn = 0;
  for (const MatrixInstruction* instruction : instructions_of(engine)) {
    for (const InputFamily family : {InputFamily::raw_bits, InputFamily::subnormal_operands}) {
      const Shape shape = closed_shape(*instruction, 16, 8);
      compare(engine, *instruction, family, turn++, {shape.m, shape.n, shape.k}, 2, 0, {});
    }
  }
  std::fesetenv(&saved);
}

TEMPLATE_TEST_CASE("the number of threads does not change the result", "[cpu]", Avx512, Avx2, Neon,
                   Portable) {
  if (!can_test(TestType::sets)) return;
  const Engine& engine = engine_named(TestType::name);
  int accepted = 0;
  for (const char* name : {"mma.sync.aligned.m8n8k4.row.col.f16.f16.f16.f16",
                           "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32",
                           "mma.sync.aligned.m16n8k8.row.col.f32.bf16.bf16.f32"}) {
    const MatrixInstruction instruction = emulator::require_instruction("sm_90", name, "test");
    const BatchInputs inputs =
        batch_inputs(instruction, InputFamily::sparse_zeros, 1, {1, 1, instruction.shape.k}, 40001);
    if (!engine.accepts(instruction)) continue;
    ++accepted;
    const std::vector<std::byte> one = execute(engine, instruction, inputs, {}, 1);
    for (const int threads : {0, 2, 3, 7}) {
      CHECK(execute(engine, instruction, inputs, {}, threads) == one);
    }
  }
  CHECK(accepted > 0);
}

TEST_CASE("an empty batch writes nothing") {
  const MatrixInstruction instruction = emulator::require_instruction(
      "sm_90", "mma.sync.aligned.m16n8k8.row.col.f32.bf16.bf16.f32", "test");
  const BatchInputs inputs =
      batch_inputs(instruction, InputFamily::raw_bits, 1, instruction.shape, 0);
  for (const Engine& engine : emulator::engines()) {
    CHECK(execute(engine, instruction, inputs, {}).empty());
  }
}

// ---- What a batch means, judged by the oracle --------------------------------------------------

namespace {

/// Reads batches by NUMERICS 3.3 and 3.4, not by the emulator's helpers.
class BatchReader {
 public:
  BatchReader(const MatrixInstruction& instruction, const BatchInputs& inputs,
              const Modifiers& modifiers)
      : instruction_(instruction), x_(inputs), modifiers_(modifiers) {}

  DotInputs operands(std::int64_t t, int m, int n) const {
    const Shape& s = x_.shape;
    const int stored = stored_count();
    DotInputs result;
    for (int i = 0; i < stored; ++i) {
      const std::int64_t at = (t * s.m + m) * stored + i;
      const std::int64_t k = dense_index(i, at);
      result.a.push_back(code(instruction_.a, x_.a, at) ^
                         sign(instruction_.a, modifiers_.negate_a));
      result.b.push_back(code(instruction_.b, x_.b, (t * s.k + k) * s.n + n) ^
                         sign(instruction_.b, modifiers_.negate_b));
    }
    for (int i = 0; i < instruction_.scale.count; ++i) {
      result.a_scale.push_back(code(instruction_.scale.format, x_.a_scale,
                                    (t * s.m + m) * instruction_.scale.count + i));
      result.b_scale.push_back(code(instruction_.scale.format, x_.b_scale,
                                    (t * instruction_.scale.count + i) * s.n + n));
    }
    if (!modifiers_.zero_addend) result.c = code(instruction_.c, x_.c, (t * s.m + m) * s.n + n);
    return result;
  }

 private:
  bool sparse() const {
    return !x_.e.empty() && !instruction_.evidence.source.empty() && is_sparse_name();
  }
  bool is_sparse_name() const {
    const std::string_view name = instruction_.name;
    return name.find(".sp") != std::string_view::npos ||
           name.find("smfmac") != std::string_view::npos;
  }
  /// Half of K: two of four, one of two, or (four-bit types) two pairs of four.
  int stored_count() const { return sparse() ? x_.shape.k / 2 : x_.shape.k; }

  std::int64_t dense_index(int i, std::int64_t at) const {
    if (!sparse()) return i;
    const auto position =
        std::to_integer<std::int64_t>(x_.e[static_cast<std::size_t>(at + x_.misalignment)]);
    if (instruction_.a == formats::tf32) return i * 2 + position;
    const bool pairs = instruction_.a == formats::int4 || instruction_.a == formats::uint4 ||
                       std::string_view(instruction_.name).find("mxf4") != std::string_view::npos;
    if (pairs) return i / 4 * 8 + position * 2 + i % 2;
    return i / 2 * 4 + position;
  }

  std::uint64_t code(const formats::Format& f, const std::vector<std::byte>& bytes,
                     std::int64_t index) const {
    const oracle::FormatParameters format = oracle_format(f);
    const std::size_t width = format.bits <= 8    ? 1
                              : format.bits <= 16 ? 2
                              : format.bits <= 32 ? 4
                                                  : 8;
    std::uint64_t word = 0;
    std::memcpy(&word, bytes.data() + x_.misalignment + static_cast<std::size_t>(index) * width,
                width);
    return format == oracle::tf32 ? oracle::tf32_from_register(word) : word;
  }

  static std::uint64_t sign(const formats::Format& f, bool negate) {
    return negate ? std::uint64_t{1} << (oracle_format(f).bits - 1) : 0;
  }

  const MatrixInstruction& instruction_;
  const BatchInputs& x_;
  Modifiers modifiers_;
};

void judge_batch(const Engine& engine, const MatrixInstruction& instruction,
                 const Modifiers& modifiers) {
  const Judge judge = judge_of(instruction);
  const BatchInputs inputs = batch_inputs(instruction, InputFamily::narrow_exponents, 9,
                                          {2, 3, instruction.shape.k}, 2, 1);
  const BatchReader reader(instruction, inputs, modifiers);
  const std::vector<std::byte> d = execute(engine, instruction, inputs, modifiers);
  const std::size_t width = d.size() / 12;
  for (std::size_t output = 0; output < 12; ++output) {
    const DotInputs x =
        reader.operands(static_cast<std::int64_t>(output / 6), static_cast<int>(output / 3 % 2),
                        static_cast<int>(output % 3));
    std::uint64_t computed = 0;
    std::memcpy(&computed, d.data() + output * width, width);
    if (agree(instruction, judge, computed, judge.answer(x))) continue;
    FAIL_CHECK(engine.name << ", output " << output << " of " << tests::text_of(instruction) << "\n"
                           << tests::text_of(x));
  }
}

}  // namespace

TEMPLATE_TEST_CASE("engines read batches as the oracle does", "[cpu]", Avx512, Avx2, Neon, Portable,
                   Silicon, Reference) {
  if (!can_test(TestType::sets)) return;
  const Engine& engine = engine_named(TestType::name);
  std::size_t turn = 0;
  for (const MatrixInstruction* instruction : instructions_of(engine))
    judge_batch(engine, *instruction, modifiers_of(*instruction, turn++));
}

TEST_CASE("engines are found by name") {
  const MatrixInstruction plain = emulator::require_instruction(
      "sm_90", "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32", "test");
  const MatrixInstruction chain = emulator::require_instruction(
      "sm_90", "mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64", "test");
  CHECK(emulator::require_engine("auto", plain).name == (is_here(Avx512::sets) ? Avx512::name
                                                         : is_here(Avx2::sets) ? Avx2::name
                                                         : is_here(Neon::sets) ? Neon::name
                                                                               : Portable::name));
  CHECK(emulator::require_engine("auto", chain).accepts(chain));
  CHECK(emulator::require_engine("reference", chain).name == "reference");
  CHECK(emulator::require_engine("portable", plain).name == "portable");
  CHECK_THROWS_AS(emulator::require_engine("portable", chain), formats::Error);
  CHECK_THROWS_AS(emulator::require_engine("abacus", plain), formats::Error);
}
