#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "emulator/functions/function.hpp"
#include "tests/mutation/functions/program_change.hpp"

// Which vectors notice that a program of CUDA has another constant or another step.
namespace guardbit::tests {

/// What a program gives: of all functions that are asked the model has the hardware's digest.
struct FunctionVector {
  std::string function;
  emulator::OperandCodes operands{};
  emulator::ResultCodes results{};
};

/// A constant of a function's program, a number or a word, and by how many places it has to be
/// larger, or smaller, for some vector to notice: a power of 2, or 0 where none was found. Where
/// that is not 1, a change of one place is unobservable.
struct ConstantFact {
  std::string function;
  bool is_word = false;
  std::uint32_t constant = 0;
  std::uint32_t up = 0, down = 0;
};

/// A change of a step that no result shows.
struct UnobservableStep {
  std::string function;
  StepPlace place = 0;
  StepChange change = left_out;
};

/// tests/mutation/functions/vectors.txt, by function: lines of vectors, "v NAME OPERAND...
/// RESULT..." with codes in hex; of constants, "c NAME CODE UP DOWN", of words "w" likewise; of
/// steps, "s NAME PLACE CHANGE".
struct FunctionSurvey {
  std::vector<FunctionVector> vectors;
  std::vector<ConstantFact> constants;
  std::vector<UnobservableStep> steps;
};
FunctionSurvey read_function_survey();
/// What is said of one function.
FunctionSurvey part_of(const FunctionSurvey& survey, std::string_view function);
void write_function_survey(const FunctionSurvey& survey);

/// The functions that are asked: all of CUDA's whose programs have constants or steps.
std::vector<const emulator::Function*> surveyed_functions();

/// A constant that is larger or smaller by some places, or a step that is another.
struct FunctionMutant {
  enum class Kind : std::uint8_t { number, word, step };
  Kind kind = Kind::number;
  /// the constant, or the step's place
  std::uint32_t at = 0;
  std::int64_t places = 0;
  StepChange change = left_out;

  bool operator==(const FunctionMutant&) const = default;
};
std::string text_of(const FunctionMutant& mutant);

/// The constant with its change. Numbers go on through zero to the other sign, and end at infinity.
std::optional<ConstantChange> constant_change(const FunctionMutant& mutant);

/// All of them as program_change, while this stands.
class Mutated {
 public:
  explicit Mutated(const std::vector<FunctionMutant>& mutants);
  ~Mutated();
  Mutated(const Mutated&) = delete;
  Mutated& operator=(const Mutated&) = delete;

 private:
  void change_place(StepPlace place, std::uint8_t change);

  std::vector<StepPlace> places_;
};

/// Results of the mutated program.
emulator::ResultCodes results_by(const emulator::Function& function,
                                 const emulator::OperandCodes& operands,
                                 const std::vector<FunctionMutant>& mutants);
/// What the program of those operands is made of, added to `parts`.
void add_parts(const emulator::Function& function, const emulator::OperandCodes& operands,
               ProgramParts& parts);
/// Every change of a step.
std::vector<FunctionMutant> step_mutants(const ProgramParts& parts);

/// Inputs by their number: of one operand all 2^32 codes in an order that spreads, else tuples of
/// argument_tuple.
emulator::OperandCodes input_of(const emulator::Function& function, std::uint64_t number);

/// The first input from `begin` to `end` of which mutants, all at once, give another result.
/// By a kernel where there is one, else one by one.
std::optional<std::uint64_t> first_notice(const emulator::Function& function,
                                          const std::vector<FunctionMutant>& mutants,
                                          std::uint64_t begin, std::uint64_t end);

/// The same of each group.
std::vector<std::optional<std::uint64_t>> first_notices(
    const emulator::Function& function, const std::vector<std::vector<FunctionMutant>>& groups,
    std::uint64_t begin, std::uint64_t end);

struct MutantNotice {
  FunctionMutant mutant;
  emulator::OperandCodes input{};
};
/// Which of the mutants any of the first inputs notices, asked from the one at `begin` on. What no
/// input notices all at once is not asked one by one.
std::vector<MutantNotice> notices_of_group(const emulator::Function& function,
                                           std::vector<FunctionMutant> group, std::uint64_t inputs,
                                           std::uint64_t begin = 0);

/// What the survey calls unobservable and one of the first inputs notices.
std::vector<MutantNotice> notices_of_unobservable(const emulator::Function& function,
                                                  const FunctionSurvey& survey,
                                                  std::uint64_t inputs);
/// The survey with vectors that notice those.
FunctionSurvey settled(const emulator::Function& function, FunctionSurvey survey,
                       std::uint64_t inputs);

/// Searches vectors of a function that notice all mutants that the first `inputs` inputs notice.
FunctionSurvey search_function_survey(const emulator::Function& function, std::uint64_t inputs);

/// Without what is called unobservable and its vectors notice: inputs that were found for others.
FunctionSurvey tidied(const emulator::Function& function, FunctionSurvey survey);

/// How many inputs settle that a mutant of the function is unobservable: all, or as many drawn ones
/// as take some seconds.
std::uint64_t settling_inputs(const emulator::Function& function);

}  // namespace guardbit::tests
