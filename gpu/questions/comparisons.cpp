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

Batch random_inputs(const TensorCoreInstruction& row, std::uint64_t seed, int times) {
  return make_inputs(row, static_cast<int>(families(row).size()) * times, seed);
}

int count_differences(const Batch& x, const Batch& y) {
  int count = 0;
  for (std::size_t i = 0; i < x.d.size(); ++i) count += x.d[i] != y.d[i];
  return count;
}

void add_candidate(Comparison& comparison, const Batch& answer, std::string meaning,
                   const MatrixInstruction& rule) {
  Batch batch = answer;
  run_on_host_model(rule, *comparison.row, batch);
  comparison.candidates.push_back({std::move(meaning), count_differences(answer, batch)});
}

/// The two compositions of NUMERICS 1.5, and the native rule of wgmma.
void add_fp8_candidates(Comparison& comparison, const Batch& answer) {
  using namespace emulator;
  const Format d = comparison.row->d;
  const bool f32 = d == formats::fp32;
  AccumulatorSpec hmma;
  hmma.terms = 16;
  hmma.kept_fraction_bits = 25;
  hmma.min_exponent = f32 ? -133 : -21;
  hmma.result = f32 ? formats::Rounding::toward_zero : formats::Rounding::nearest_even;
  const auto add = [&](const char* meaning, const Steps& steps) {
    MatrixInstruction rule = catalogue_row(*comparison.row);
    rule.steps = steps;
    add_candidate(comparison, answer, meaning, rule);
  };
  add("two f16 instructions, the second chained to the first; C is added last",
      fp8_chained(hmma, d, {}, {}).steps);
  add("the same two side by side; their sum, then C", fp8_parallel(hmma, d, {}, {}).steps);
  hmma.terms = 32;
  hmma.kept_fraction_bits = 13;
  hmma.result_fraction_bits = f32 ? 13 : 0;
  add("one native block with F = 13, as wgmma", {dot_step(hmma, every_k, Source::c, d)});
}

Comparison compare_fp8(const TensorCoreInstruction& row, const Executor& execute,
                       std::uint64_t seed) {
  Batch answer = random_inputs(row, seed, rounds);
  execute(row, answer);
  Comparison comparison{&row, static_cast<int>(answer.d.size()), {}};
  add_fp8_candidates(comparison, answer);
  return comparison;
}

Comparison compare_fp8_ahead_of_time(const TensorCoreInstruction& row, const Answerer& answerer,
                                     std::uint64_t seed) {
  return compare_fp8(row, answerer.ahead_of_time, seed);
}

Comparison compare_fp8_just_in_time(const TensorCoreInstruction& row, const Answerer& answerer,
                                    std::uint64_t seed) {
  return compare_fp8(row, answerer.just_in_time, seed);
}

Comparison compare_translations(const TensorCoreInstruction& row, const Answerer& answerer,
                                std::uint64_t seed) {
  Batch ahead = random_inputs(row, seed, rounds), just = ahead;
  answerer.ahead_of_time(row, ahead);
  answerer.just_in_time(row, just);
  return {&row,
          static_cast<int>(ahead.d.size()),
          {{"the driver's code gives what the toolkit's gives", count_differences(ahead, just)}}};
}

/// Operand choices and wider tiles against the plain form of the instruction.
Comparison compare_with_plain_form(const TensorCoreInstruction& row, const Answerer& answerer,
                                   std::uint64_t seed) {
  Batch answer = random_inputs(row, seed, row.n > 32 ? 1 : 4);
  answerer.ahead_of_time(row, answer);
  const TensorCoreInstruction& plain = *find_plain(row.plain);
  Batch of_plain = as_plain_form(row, plain, answer);
  answerer.ahead_of_time(plain, of_plain);
  return {
      &row,
      static_cast<int>(answer.d.size()),
      {{"bit for bit what the plain form gives", count_differences(row, plain, answer, of_plain)}}};
}

/// FP8 operands of two formats against the rule of one, and against its neighbours.
Comparison compare_mixed_fp8(const TensorCoreInstruction& row, const Answerer& answerer,
                             std::uint64_t seed) {
  Batch answer = random_inputs(row, seed, rounds);
  answerer.ahead_of_time(row, answer);
  Comparison comparison{&row, static_cast<int>(answer.d.size()), {}};
  struct Rule {
    int terms, kept;
  };
  for (const auto& [terms, kept] : {Rule{32, 13}, Rule{32, 12}, Rule{32, 14}, Rule{16, 13}}) {
    MatrixInstruction rule = catalogue_row(row);
    AccumulatorSpec& spec = rule.steps.list[0].spec;
    spec.terms = terms;
    spec.kept_fraction_bits = kept;
    add_candidate(comparison, answer,
                  "L = " + std::to_string(terms) + ", F = " + std::to_string(kept), rule);
  }
  return comparison;
}

}  // namespace

const Candidate* Comparison::conclusion() const {
  const Candidate* found = nullptr;
  for (const Candidate& candidate : candidates) {
    if (candidate.differ != 0) continue;
    if (found != nullptr) return nullptr;
    found = &candidate;
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
       "Do operand choices (registers or shared memory, N, imm-scale -1, scale-d = 0, transposes, "
       "selectors, layouts) change anything but what they say?",
       [](const TensorCoreInstruction& row) { return find_plain(row.plain) != nullptr; },
       compare_with_plain_form},
      {"Q20", "wgmma of e4m3 with e5m2: the same F and L as of one format?",
       [](const TensorCoreInstruction& row) {
         return is_plain(row) && row.unit == Unit::wgmma && is_fp8(row.a) && !(row.a == row.b);
       },
       compare_mixed_fp8}};
  return list;
}

}  // namespace guardbit::gpu
