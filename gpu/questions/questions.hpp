#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "gpu/questions/inquiry.hpp"

namespace guardbit::gpu {

/// Who turned the PTX into machine code: this program's toolkit, or the driver when it ran.
enum class Translation : std::uint8_t { ahead_of_time, just_in_time };

/// One question about what an instruction computes, numbered as in docs/NUMERICS.md 2.
struct Question {
  std::string_view id;
  std::string_view text;
  bool (*concerns)(const TensorCoreInstruction& row);
  void (*put)(Inquiry& x);  ///< adds the probes and the outcomes
  Translation translation = Translation::ahead_of_time;
};

/// Every question that hand-made executions decide, topic by topic.
const std::vector<Question>& questions();

/// The inquiries of a question: one for each instruction it concerns. `row` and `model` are held
/// by reference.
Inquiry inquire(const Question& question, const TensorCoreInstruction& row,
                const emulator::MatrixInstruction& model);

/// A question that another command of this program answers.
struct AnsweredElsewhere {
  std::string_view id, text, command;
};
std::span<const AnsweredElsewhere> answered_elsewhere();

/// A question that a Hopper GPU cannot answer, what its rows assume meanwhile, and the machine that
/// would decide it.
struct Undecidable {
  std::string_view text, assumed, machine;
};
std::span<const Undecidable> undecidable();

// The kinds of instructions that questions concern. All but the last four are plain forms: one of
// each name, without operand choices.

bool is_fp8(const Format& f);
/// FP8 mma.sync and mma.sp, which ptxas makes of two f16 instructions on sm_90.
bool is_emulated_fp8(const TensorCoreInstruction& row);
/// mma.m8n8k4 on f16, which ptxas makes of scalar instructions.
bool is_quad(const TensorCoreInstruction& row);
/// One that a floating tensor core executes as it stands: products aligned, added, converted once.
bool is_fused(const TensorCoreInstruction& row);
bool is_plain(const TensorCoreInstruction& row);
bool is_fused_to_f32(const TensorCoreInstruction& row);
/// With C in f16 too.
bool is_fused_to_f16(const TensorCoreInstruction& row);
/// WMMA whose C is f32 and whose D is f16.
bool is_narrowed(const TensorCoreInstruction& row);
/// Operands with the exponents of f32: bf16 and tf32.
bool has_wide_exponents(const TensorCoreInstruction& row);
bool is_double(const TensorCoreInstruction& row);

// The questions by topic; questions() joins them.
std::vector<Question> questions_of_zero_exponent();
std::vector<Question> questions_of_kept_bits();
std::vector<Question> questions_of_signs_and_specials();
std::vector<Question> questions_of_order();
std::vector<Question> questions_of_double_precision();
std::vector<Question> questions_of_integers();

}  // namespace guardbit::gpu
