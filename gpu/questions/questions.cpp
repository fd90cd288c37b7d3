#include "gpu/questions/questions.hpp"

#include "formats/format_catalogue.hpp"

namespace guardbit::gpu {

const std::vector<Question>& questions() {
  static const std::vector<Question> all = [] {
    std::vector<Question> list;
    for (const auto topic :
         {questions_of_zero_exponent, questions_of_kept_bits, questions_of_signs_and_specials,
          questions_of_order, questions_of_double_precision, questions_of_integers})
      for (const Question& question : topic()) list.push_back(question);
    return list;
  }();
  return all;
}

HypothesisTest make_test(const Question& question, const TensorCoreInstruction& instruction,
                         const emulator::MatrixInstruction& model) {
  HypothesisTest test(instruction, model);
  question.design(test);
  return test;
}

std::span<const AnsweredElsewhere> answered_elsewhere() {
  static constexpr AnsweredElsewhere list[] = {
      {"Q21", "What do the conversion instructions (cvt) give on every input?",
       "guardbit gpu convert --all"},
      {"Q23", "In which order, split and precision does cuBLAS add a whole matrix product?",
       "guardbit gpu gemm --compare cublas"}};
  return list;
}

std::span<const Undecidable> undecidable() {
  static constexpr Undecidable list[] = {
      {"e0 of f16 results before Hopper",
       "the rule that the H200 confirms: -19 on Volta, -20 on Turing, Ampere and Ada",
       "V100 (sm_70), T4 (sm_75), A100 (sm_80), RTX 4090 or L40S (sm_89): Q1 on each"},
      {"FP8, FP6 and FP4 on sm_120 (QMMA): one block of 32 with 25 kept bits, or two chained f16 instructions?",
       "one block of 32, F = 25", "RTX 50 series or RTX PRO 6000 (sm_120): Q12, Q13 and Q18"},
      {"Block-scaled kinds (mxf8f6f4, mxf4, mxf4nvf4): F, e0, groups, NaN scales",
       "the rules of docs/NUMERICS.md 1.6",
       "B200 (sm_100) for tcgen05, an RTX 50 series card (sm_120) for mma.sync"},
      {"tcgen05 with f16 results: is e0 that of an f32 or of an f16 accumulator?",
       "as for wgmma on Hopper", "B200 (sm_100): Q1b"},
      {"mxf4nvf4 with K = 96", "no model", "B300 (sm_103)"},
      {"FP8 mma.sync as toolkit 12.4 compiles it",
       "two f16 instructions side by side, read from its machine code",
       "an H200 again, with a program compiled by toolkit 12.4"},
      {"Every rule of AMD's matrix cores", "published models", "MI100, MI250X, MI300X"}};
  return list;
}

bool is_fp8(const Format& f) { return f == formats::e4m3 || f == formats::e5m2; }

bool is_emulated_fp8(const TensorCoreInstruction& instruction) {
  return is_plain(instruction) && instruction.unit == Unit::mma && is_fp8(instruction.a);
}

bool is_quad(const TensorCoreInstruction& instruction) {
  return is_plain(instruction) && instruction.m == 8 && instruction.k == 4 &&
         instruction.a == formats::fp16;
}

bool is_fused(const TensorCoreInstruction& instruction) {
  return is_plain(instruction) && !is_integer(instruction.a) && !is_double(instruction) &&
         !is_emulated_fp8(instruction) && !is_quad(instruction);
}

bool is_plain(const TensorCoreInstruction& instruction) { return instruction.plain.empty(); }

bool is_fused_to_f32(const TensorCoreInstruction& instruction) {
  return is_fused(instruction) && instruction.d == formats::fp32;
}

bool is_fused_to_f16(const TensorCoreInstruction& instruction) {
  return is_fused(instruction) && instruction.d == formats::fp16 && instruction.c == formats::fp16;
}

bool is_narrowed(const TensorCoreInstruction& instruction) {
  return is_fused(instruction) && instruction.d == formats::fp16 && instruction.c == formats::fp32;
}

bool has_fp32_exponents(const TensorCoreInstruction& instruction) {
  return instruction.a == formats::bf16 || instruction.a == formats::tf32;
}

bool is_double(const TensorCoreInstruction& instruction) { return instruction.a == formats::fp64; }

}  // namespace guardbit::gpu
