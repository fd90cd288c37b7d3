#include "gpu/questions/comparisons.hpp"

#include "emulator/catalogue/compositions.hpp"
#include "formats/format_catalogue.hpp"
#include "gpu/inputs/inputs.hpp"
#include "gpu/model/host_model.hpp"
#include "gpu/operands/plain_form.hpp"

namespace guardbit::gpu {

namespace {

using emulator::AccumulatorSpec;
using emulator::MatrixInstruction;

constexpr int rounds = 16;  // of every family of inputs

Batch random_inputs(const TensorCoreInstruction& instruction, std::uint64_t seed, int times) {
  return make_inputs(instruction, static_cast<int>(families(instruction).size()) * times, seed);
}

int count_differences(const Batch& x, const Batch& y) {
  int count = 0;
  for (std::size_t i = 0; i < x.d.size(); ++i) count += x.d[i] != y.d[i];
  return count;
}

void add_rule(Comparison& comparison, const Batch& answer, std::string meaning,
              const MatrixInstruction& rule) {
  Batch batch = answer;
  run_on_host_model(rule, *comparison.instruction, batch);
  comparison.rules.push_back({std::move(meaning), count_differences(answer, batch)});
}

/// The two compositions of NUMERICS 1.5, and the native rule of wgmma.
void add_fp8_rules(Comparison& comparison, const Batch& answer) {
  using namespace emulator;
  const Format d = comparison.instruction->d;
  const bool f32 = d == formats::fp32;
  AccumulatorSpec hmma;
  hmma.terms = 16;
  hmma.kept_fraction_bits = 25;
  hmma.min_exponent = f32 ? -133 : -21;
  hmma.result = f32 ? formats::Rounding::toward_zero : formats::Rounding::nearest_even;
  const auto add = [&](const char* meaning, const Steps& steps) {
    MatrixInstruction rule = catalogue_instruction(*comparison.instruction);
    rule.steps = steps;
    add_rule(comparison, answer, meaning, rule);
  };
  add("two f16 instructions, the second chained to the first; C is added last",
      fp8_chained(hmma, d, {}, {}).steps);
  add("the same two side by side; their sum, then C", fp8_parallel(hmma, d, {}, {}).steps);
  hmma.terms = 32;
  hmma.kept_fraction_bits = 13;
  hmma.result_fraction_bits = f32 ? 13 : 0;
  add("one native block with F = 13, as wgmma", {dot_step(hmma, every_k, Source::c, d)});
}

Comparison compare_fp8(const TensorCoreInstruction& instruction, const Executor& execute,
                       std::uint64_t seed) {
  Batch answer = random_inputs(instruction, seed, rounds);
  execute(instruction, answer);
  Comparison comparison{&instruction, static_cast<int>(answer.d.size()), {}};
  add_fp8_rules(comparison, answer);
  return comparison;
}

Comparison compare_fp8_ahead_of_time(const TensorCoreInstruction& instruction,
                                     const Executors& executors, std::uint64_t seed) {
  return compare_fp8(instruction, executors.ahead_of_time, seed);
}

Comparison compare_fp8_just_in_time(const TensorCoreInstruction& instruction,
                                    const Executors& executors, std::uint64_t seed) {
  return compare_fp8(instruction, executors.just_in_time, seed);
}

Comparison compare_translations(const TensorCoreInstruction& instruction,
                                const Executors& executors, std::uint64_t seed) {
  Batch ahead = random_inputs(instruction, seed, rounds), just = ahead;
  executors.ahead_of_time(instruction, ahead);
  executors.just_in_time(instruction, just);
  return {&instruction,
          static_cast<int>(ahead.d.size()),
          {{"the driver's code gives what the toolkit's gives", count_differences(ahead, just)}}};
}

/// Operand choices and wider tiles against the plain form of the instruction.
Comparison compare_with_plain_form(const TensorCoreInstruction& instruction,
                                   const Executors& executors, std::uint64_t seed) {
  Batch answer = random_inputs(instruction, seed, instruction.n > 32 ? 1 : 4);
  executors.ahead_of_time(instruction, answer);
  const TensorCoreInstruction& plain = *find_plain(instruction.plain);
  Batch of_plain = as_plain_form(instruction, plain, answer);
  executors.ahead_of_time(plain, of_plain);
  return {&instruction,
          static_cast<int>(answer.d.size()),
          {{"bit for bit what the plain form gives",
            count_differences(instruction, plain, answer, of_plain)}}};
}

/// FP8 operands of two formats against the rule of one, and against its neighbours.
Comparison compare_mixed_fp8(const TensorCoreInstruction& instruction, const Executors& executors,
                             std::uint64_t seed) {
  Batch answer = random_inputs(instruction, seed, rounds);
  executors.ahead_of_time(instruction, answer);
  Comparison comparison{&instruction, static_cast<int>(answer.d.size()), {}};
  struct Rule {
    int terms, kept;
  };
  for (const auto& [terms, kept] : {Rule{32, 13}, Rule{32, 12}, Rule{32, 14}, Rule{16, 13}}) {
    MatrixInstruction rule = catalogue_instruction(instruction);
    AccumulatorSpec& spec = rule.steps.list[0].spec;
    spec.terms = terms;
    spec.kept_fraction_bits = kept;
    add_rule(comparison, answer, "L = " + std::to_string(terms) + ", F = " + std::to_string(kept),
             rule);
  }
  return comparison;
}

}  // namespace

const ComparedRule* Comparison::supported() const {
  const ComparedRule* found = nullptr;
  for (const ComparedRule& rule : rules) {
    if (rule.differ != 0) continue;
    if (found != nullptr) return nullptr;
    found = &rule;
  }
  return found;
}

const std::vector<ComparisonQuestion>& comparison_questions() {
  static const std::vector<ComparisonQuestion> list = {
      {"Q18", "FP8 mma.sync, compiled ahead of time, on random inputs", is_emulated_fp8,
       compare_fp8_ahead_of_time},
      {"Q18b", "FP8 mma.sync, compiled by the driver, on random inputs", is_emulated_fp8,
       compare_fp8_just_in_time},
      {"Q18c", "Do the driver and the toolkit translate FP8 mma.sync to code of the same results?",
       is_emulated_fp8, compare_translations},
      {"Q19",
       "Do operand choices (registers or shared memory, N, imm-scale -1, scale-d = 0, transposes, selectors, layouts) change anything but what they say?",
       [](const TensorCoreInstruction& instruction) {
         return find_plain(instruction.plain) != nullptr;
       },
       compare_with_plain_form},
      {"Q20", "wgmma of e4m3 with e5m2: the same F and L as of one format?",
       [](const TensorCoreInstruction& instruction) {
         return is_plain(instruction) && instruction.unit == Unit::wgmma && is_fp8(instruction.a) &&
                !(instruction.a == instruction.b);
       },
       compare_mixed_fp8}};
  return list;
}

}  // namespace guardbit::gpu
