#include "tests/mutation/survey.hpp"

#include <algorithm>

#include "formats/support/parallel.hpp"
#include "tests/mutation/recordings.hpp"

namespace guardbit::tests {

namespace {

/// Outputs sampled of each recording: enough to notice, few enough to try on every mutant.
constexpr std::int64_t sampled_outputs = 2048;

void append(std::vector<const TestVector*>& all, const std::vector<TestVector>& list) {
  for (const TestVector& v : list) all.push_back(&v);
}

/// The committed vectors of an instruction, by the instruction that their header names.
std::vector<const TestVector*> vectors_of(const MatrixInstruction& instruction,
                                          const std::vector<InstructionVectors>& vectors) {
  std::vector<const TestVector*> found;
  for (const InstructionVectors& x : vectors) {
    const bool same = x.instruction.arch == instruction.arch &&
                      x.instruction.sparsity == instruction.sparsity &&
                      std::string_view(x.instruction.name) == std::string_view(instruction.name) &&
                      toolkit_of(x.instruction) == toolkit_of(instruction);
    if (same) append(found, x.list);
  }
  return found;
}

bool any_notices(const std::vector<const TestVector*>& list, const Mutant& mutant,
                 bool nan_is_any_nan) {
  return std::any_of(list.begin(), list.end(),
                     [&](const TestVector* v) { return notices(*v, mutant, nan_is_any_nan); });
}

std::vector<Finding> findings_of(std::vector<Mutant> mutants, const MatrixInstruction& instruction,
                                 const std::vector<const TestVector*>& vectors,
                                 const std::vector<const TestVector*>& recorded) {
  const bool any_nan = judge_of(instruction).nan_is_any_nan;
  // A proof is tried on fewer of the recorded outputs than a search, which ends where it succeeds.
  std::vector<const TestVector*> sampled;
  for (std::size_t i = 0; i < recorded.size(); i += 8) sampled.push_back(recorded[i]);
  std::vector<Finding> findings;
  for (Mutant& mutant : mutants) {
    Finding finding;
    if (mutant.place != Place::sparsity) finding.unobservable = unobservable(instruction, mutant);
    finding.by_vector = any_notices(vectors, mutant, any_nan);
    const bool proven = finding.unobservable && !finding.unobservable.recording_may_tell;
    finding.by_recording = any_notices(proven ? sampled : recorded, mutant, false);
    finding.mutant = std::move(mutant);
    findings.push_back(std::move(finding));
  }
  return findings;
}

}  // namespace

std::vector<Survey> survey_catalogue(const std::vector<InstructionVectors>& vectors) {
  const std::vector<RecordedInstruction> recordings = read_recordings(sampled_outputs);
  std::vector<Survey> surveys;
  for (const SharedArithmetic& shared : arithmetics()) {
    surveys.push_back({shared.instruction, shared.instructions, false, {}});
  }
  for (const SharedSparsity& shared : sparsities()) {
    surveys.push_back({shared.instruction, shared.instructions, false, {}});
  }
  formats::parallel_for(surveys.size(), 1, 0, [&](std::size_t begin, std::size_t) {
    Survey& survey = surveys[begin];
    const MatrixInstruction& instruction = survey.instruction;
    const bool sparse = instruction.sparsity.group_elements != 0;
    std::vector<const TestVector*> recorded;
    for (const RecordedInstruction& x : recordings) {
      if (!same_arithmetic(x.instruction, instruction)) continue;
      if (!sparse) append(recorded, x.dense);
      if (sparse && x.instruction.sparsity == instruction.sparsity) append(recorded, x.sparse);
    }
    survey.has_recordings = !recorded.empty();
    survey.findings =
        findings_of(sparse ? sparsity_mutants_of(instruction) : mutants_of(instruction),
                    instruction, vectors_of(instruction, vectors), recorded);
  });
  return surveys;
}

}  // namespace guardbit::tests
