#include "emulator/plan_search/units.hpp"

#include <algorithm>
#include <optional>
#include <string>
#include <tuple>
#include <utility>

#include "emulator/catalogue/instruction_catalogue.hpp"
#include "emulator/catalogue/usual_instruction.hpp"
#include "emulator/gemm/plan_library.hpp"
#include "emulator/gemm/scalar.hpp"

namespace guardbit::emulator {

namespace {

/// What an instruction computes, without its K where K does not matter: if it is one step of whole
/// blocks, or a chain of multiply-adds. Instructions with equal Arithmetic give equal products.
struct Arithmetic {
  std::vector<Step> steps;
  Format d{};
  int k = 0;
  friend bool operator==(const Arithmetic&, const Arithmetic&) = default;
};

Arithmetic arithmetic_of(const MatrixInstruction& instruction) {
  Arithmetic x{
      {instruction.steps.begin(), instruction.steps.end()}, instruction.d, instruction.shape.k};
  if (x.steps.size() != 1) return x;
  const AccumulatorSpec& spec = x.steps[0].spec;
  const int length =
      spec.terms == 0 ? instruction.shape.k : std::min(spec.terms, instruction.shape.k);
  if (spec.summation == Summation::fma_chain || spec.summation == Summation::integer) {
    x.k = 1;
  } else if (instruction.shape.k % length == 0) {
    x.k = length;
    x.steps[0].spec.terms = length;
  }
  return x;
}

}  // namespace

std::vector<const MatrixInstruction*> instructions_for(std::string_view arch, const Format& a,
                                                       const Format& b, bool sparse,
                                                       const Format* d) {
  std::vector<const MatrixInstruction*> instructions;
  const auto take = [&](const MatrixInstruction& instruction) {
    const bool is_sparse = instruction.sparsity.group_elements != 0;
    if (instruction.arch != arch || instruction.a != a || instruction.b != b ||
        instruction.scale.count != 0 || is_sparse != sparse)
      return;
    if (std::string_view(instruction.name).find("satfinite") != std::string_view::npos) return;
    if (is_sparse && instruction.sparsity.chunk != 1) return;
    if (instruction.c != instruction.d || (d != nullptr && instruction.d != *d)) return;
    instructions.push_back(&instruction);
  };
  for (const MatrixInstruction& instruction : added_instructions()) take(instruction);
  for (const MatrixInstruction& instruction : catalogue()) take(instruction);
  // FP32 sums come first, then preferred families, then long instructions.
  std::stable_sort(instructions.begin(), instructions.end(), [](const auto* x, const auto* y) {
    const auto key = [](const MatrixInstruction& instruction) {
      return std::tuple(instruction.d == formats::fp16, usual_rank(instruction.family),
                        -instruction.shape.k);
    };
    return key(*x) < key(*y);
  });
  std::vector<const MatrixInstruction*> distinct;
  std::vector<Arithmetic> seen;
  for (const MatrixInstruction* instruction : instructions) {
    Arithmetic x = arithmetic_of(*instruction);
    if (std::find(seen.begin(), seen.end(), x) != seen.end()) continue;
    seen.push_back(std::move(x));
    distinct.push_back(instruction);
  }
  return distinct;
}

void apply(const UnitChoice& choice, GemmPlan& plan) {
  plan.unit = choice.unit;
  plan.input = choice.input;
  if (choice.loads.lanes != 0) plan.loads = choice.loads;
  plan.epilogue.alpha_on = choice.alpha_on;
  plan.epilogue.alpha = choice.alpha;
  plan.epilogue.addition = choice.addition;
  plan.epilogue.beta = choice.beta;
}

namespace {

/// True for Volta's m8n8k4 on later machines, which compute it on CUDA cores (NUMERICS 1.5); no
/// library uses it there.
bool is_emulated_by_multiply_adds(const MatrixInstruction& instruction) {
  return formats::bits(instruction.a) <= 16 &&
         std::any_of(instruction.steps.begin(), instruction.steps.end(), [](const Step& step) {
           return step.operation == Operation::dot && step.spec.summation == Summation::fma_chain;
         });
}

/// True if FP32 elements are numbers of BF16 or FP16: what an operand was that a program widened.
bool holds_16_bits(const CodeMatrix& matrix) {
  constexpr std::int64_t most = 4096;
  const std::int64_t step = std::max<std::int64_t>(1, matrix.size() / most);
  bool of_bf16 = true, of_fp16 = true;
  for (std::int64_t at = 0; at < matrix.size() && (of_bf16 || of_fp16); at += step) {
    const auto code = static_cast<std::uint32_t>(matrix[at]);
    const double x = scalar::decoded(formats::fp32, code);
    of_bf16 = of_bf16 && (code & 0xffff) == 0;
    of_fp16 = of_fp16 && scalar::rounded(formats::fp16, x) == x;
  }
  return of_bf16 || of_fp16;
}

std::vector<UnitChoice> units_by_format(const GemmCapture& capture, std::string_view arch) {
  const Format a = capture.problem.a.format, b = capture.problem.b.format;
  const bool sparse = capture.problem.sparse_a;
  std::vector<UnitChoice> units;
  const auto add_instructions = [&](const Format& x, const Format& y, const InputConversion& input,
                                    const LoadOrder& loads = {}) {
    for (const bool compressed : {sparse, false}) {
      for (const MatrixInstruction* instruction : instructions_for(arch, x, y, compressed)) {
        if (is_emulated_by_multiply_adds(*instruction)) continue;
        units.push_back(
            {{std::string(instruction->arch), std::string(std::string_view(instruction->name))},
             input,
             loads});
        if (units.back().is_of_compilers()) break;  // Triton takes the usual instruction
      }
      if (!compressed) break;
    }
  };
  const auto add_multiply_adds = [&](const char* name) {
    const UnitChoice fma = {{"simt", name}, {}};
    units.push_back(fma);
    if (capture.alpha == 1) return;
    for (const auto on : {Epilogue::AlphaOn::a, Epilogue::AlphaOn::b})
      units.push_back({fma.unit, {}, {}, on, capture.alpha});
  };
  using Cut = InputConversion::Cut;
  if (a == formats::fp64) {
    add_multiply_adds("fma.fp64");
    for (const Cut cut : {Cut::slices, Cut::grouped_slices})
      for (const int slices : {8, 7, 9, 6, 10, 5, 11, 12})
        add_instructions(formats::int8, formats::int8,
                         {Rounding::toward_zero, slices, slices, cut});
    return units;
  }
  if (formats::is_integer(a)) {
    add_instructions(a, b, {});
    if (units.empty()) units.push_back({{"simt", "mad.int32"}, {}});
    units.resize(1);  // integer sums are exact, whatever the unit and the order
    return units;
  }
  if (a == formats::fp32) {
    for (const Rounding rounding :
         {Rounding::nearest_even, Rounding::toward_zero, Rounding::nearest_away})
      add_instructions(formats::tf32, formats::tf32, {rounding, 1, 1});
    if (holds_16_bits(capture.problem.a) || holds_16_bits(capture.problem.b))
      for (const Rounding rounding :
           {Rounding::nearest_even, Rounding::toward_zero, Rounding::nearest_away})
        add_instructions(formats::tf32, formats::tf32, {rounding, 1, 1}, widened_pairs);
    const std::size_t once = units.size();
    // Triton takes the products of a tile of K pair by pair of pieces, and may exchange the
    // operands. Its second piece of TF32 is what the first left, truncated: the unit ignores the
    // low bits of the register.
    for (const bool b_first : {false, true}) {
      for (const int tile : {32, 64, 16, 128}) {
        add_instructions(
            formats::tf32, formats::tf32,
            {Rounding::nearest_away, 2, 2, Cut::rest, 0, tile, Rounding::toward_zero, b_first});
        for (const int pieces : {2, 3})
          add_instructions(
              formats::bf16, formats::bf16,
              {Rounding::nearest_even, pieces, pieces, Cut::rest, 0, tile, std::nullopt, b_first});
      }
    }
    for (const auto& [pieces, ranks] : {std::pair{2, 2}, {2, 3}})
      add_instructions(formats::tf32, formats::tf32, {Rounding::nearest_even, pieces, ranks});
    for (const auto& [pieces, ranks] : {std::pair{1, 1}, {2, 2}, {3, 3}, {3, 5}})
      add_instructions(formats::bf16, formats::bf16, {Rounding::nearest_even, pieces, ranks});
    add_instructions(formats::fp16, formats::fp16, {Rounding::nearest_even, 1, 1});
    for (const Rounding rounding : {Rounding::nearest_even, Rounding::nearest_away})
      add_instructions(formats::fp16, formats::fp16, {rounding, 2, 2, Cut::scaled_rest, 11});
    std::erase_if(units, [](const UnitChoice& u) {
      return u.unit.instruction.find(".f16.f16.f16") != std::string::npos;
    });
    const std::size_t matrix_units = units.size();
    add_multiply_adds("fma.fp32");
    // A product with a vector, or of one element of K, may be multiplied first and added by a
    // reduction (XLA), also one of BF16 numbers.
    if (capture.is_of_vector() || capture.problem.k() == 1)
      for (const char* const name : {"mul_add.fp32", "mul_add.bf16", "mul_add.fp16"})
        add_multiply_adds(name);
    std::rotate(units.begin() + (capture.tf32 ? static_cast<std::ptrdiff_t>(once) : 0),
                units.begin() + static_cast<std::ptrdiff_t>(matrix_units), units.end());
    return units;
  }
  add_instructions(a, b, {});
  // Compilers may widen operands of 16 bits to TF32.
  if ((a == formats::fp16 || a == formats::bf16) && capture.d.format == formats::fp32)
    add_instructions(formats::tf32, formats::tf32, {}, widened_pairs);
  // FP8 widened to FP16: in pairs that lie in one register of m16n8k32's fragments (NUMERICS 1.5),
  // the chain taking both halves, or in ascending order.
  if (formats::bits(a) == 8) {
    for (const LoadOrder& loads : {LoadOrder{8, 4, 2}, LoadOrder{}})
      add_instructions(formats::fp16, formats::fp16, {}, loads);
    std::erase_if(units, [](const UnitChoice& u) {
      return u.unit.instruction.find(".f16.f16.f16") != std::string::npos;
    });
    // Instructions of several steps come last.
    std::stable_partition(units.begin(), units.end(), [](const UnitChoice& u) {
      return require_instruction(u.unit.arch, u.unit.instruction, "search").steps.count == 1;
    });
  }
  add_multiply_adds("fma.fp32");
  if (capture.is_of_vector()) {
    add_multiply_adds("mul_add.fp32");
    if (a == formats::fp16) add_multiply_adds("mul_add.fp16");
    if (a == formats::bf16) add_multiply_adds("mul_add.bf16");
  }
  if (a == formats::fp16) units.push_back({{"simt", "fma.fp16"}, {}});
  return units;
}

/// Puts first the unit that the table of plans has for the kernels that the capture names.
void put_named_first(const GemmCapture& capture, std::vector<UnitChoice>& units) {
  const auto kernels = capture.metadata.find("kernels");
  if (kernels == capture.metadata.end()) return;
  for (const LibraryPlan& row : library_plans()) {
    if (!matches_kernel(row.kernel, kernels->second)) continue;
    const GemmPlan named = parse_plan(row.plan, "table of plans");
    const auto found = std::find_if(units.begin(), units.end(), [&](const UnitChoice& x) {
      return x.unit == named.unit && x.input == named.input && x.loads.lanes == 0 &&
             x.alpha_on == Epilogue::AlphaOn::sum;
    });
    if (found == units.end()) continue;
    std::rotate(units.begin(), found, found + 1);
    return;
  }
}

/// Matrix units whose operand is multiplied by alpha beforehand: compilers (XLA) fuse a factor of
/// an operand into what loads it.
void add_scaled_operands(const GemmCapture& capture, std::vector<UnitChoice>& units) {
  if (capture.alpha == 1 || formats::is_integer(capture.problem.a.format)) return;
  const std::size_t count = units.size();
  for (std::size_t i = 0; i < count; ++i) {
    if (units[i].unit.arch == "simt" || units[i].input.pieces != 1 || units[i].loads.lanes != 0)
      continue;
    for (const auto on : {Epilogue::AlphaOn::a, Epilogue::AlphaOn::b})
      units.push_back({units[i].unit, units[i].input, {}, on, capture.alpha});
  }
}

}  // namespace

bool has_addend(const GemmCapture& capture) {
  const GemmProblem& x = capture.problem;
  return (!x.c.empty() && capture.beta != 0) || !x.bias.empty();
}

std::vector<UnitChoice> units_for(const GemmCapture& capture, std::string_view arch) {
  std::vector<UnitChoice> units = units_by_format(capture, arch);
  add_scaled_operands(capture, units);
  put_named_first(capture, units);
  return units;
}

}  // namespace guardbit::emulator
