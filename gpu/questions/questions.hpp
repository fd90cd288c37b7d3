#pragma once

// The numbered questions of docs/NUMERICS.md 2 that hand-made executions decide. Each one says
// which instructions it concerns and designs a hypothesis test (hypotheses.hpp) for any of them.

#include <span>
#include <string_view>
#include <vector>

#include "gpu/questions/hypotheses.hpp"

namespace guardbit::gpu {

/// Who turned the PTX into machine code: this program's toolkit, or the driver when it ran.
enum class Translation : std::uint8_t { ahead_of_time, just_in_time };

/// One question about what instructions compute.
struct Question {
  std::string_view id;
  std::string_view text;
  bool (*concerns)(const TensorCoreInstruction& instruction);
  /// adds the trials and the hypotheses
  void (*design)(HypothesisTest& x);
  Translation translation = Translation::ahead_of_time;
};

/// All these questions, topic by topic.
const std::vector<Question>& questions();

/// The test of a question on one instruction that it concerns. `instruction` and `model` must
/// outlive it.
HypothesisTest make_test(const Question& question, const TensorCoreInstruction& instruction,
                         const emulator::MatrixInstruction& model);

/// A question that another command of this program answers.
struct AnsweredElsewhere {
  std::string_view id, text, command;
};
std::span<const AnsweredElsewhere> answered_elsewhere();

/// A question that a Hopper GPU cannot decide, what the catalogue assumes until then, and the
/// machine that would decide it.
struct Undecidable {
  std::string_view text, assumed, machine;
};
std::span<const Undecidable> undecidable();

// Kinds of instructions that questions concern. A plain form is the one instruction of its name
// without operand choices; is_fp8, has_fp32_exponents and is_double accept other forms too.

bool is_fp8(const Format& f);
/// FP8 mma.sync and mma.sp, which ptxas makes of two f16 instructions on sm_90.
bool is_emulated_fp8(const TensorCoreInstruction& instruction);
/// mma.m8n8k4 on f16, which ptxas makes of scalar instructions.
bool is_quad(const TensorCoreInstruction& instruction);
/// A floating-point instruction that the tensor core executes itself: it aligns the products, adds
/// them and converts the sum once.
bool is_fused(const TensorCoreInstruction& instruction);
bool is_plain(const TensorCoreInstruction& instruction);
bool is_fused_to_f32(const TensorCoreInstruction& instruction);
/// With C in f16 too.
bool is_fused_to_f16(const TensorCoreInstruction& instruction);
/// WMMA whose C is f32 and whose D is f16.
bool is_narrowed(const TensorCoreInstruction& instruction);
/// Operands with the exponents of f32: bf16 and tf32.
bool has_fp32_exponents(const TensorCoreInstruction& instruction);
bool is_double(const TensorCoreInstruction& instruction);

// The questions by topic; questions() joins them.
std::vector<Question> questions_of_zero_exponent();
std::vector<Question> questions_of_kept_bits();
std::vector<Question> questions_of_signs_and_specials();
std::vector<Question> questions_of_order();
std::vector<Question> questions_of_double_precision();
std::vector<Question> questions_of_integers();

}  // namespace guardbit::gpu
