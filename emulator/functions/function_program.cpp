#include "emulator/functions/function_program.hpp"

// What every program shares stands apart: each of the many would have a copy.
namespace guardbit::emulator {

namespace {

using Doubles = std::array<double, most_operands>;

std::vector<ProgramStep> steps_of(ResultCodes (*reference)(const OperandCodes&),
                                  const OperandCodes& operands) {
  std::vector<ProgramStep> steps;
  traced_steps = &steps;
  reference(operands);
  traced_steps = nullptr;
  return steps;
}

}  // namespace

InDoubles in_doubles(double (*exact)(double)) {
  return [exact](const Doubles& a) { return std::array{exact(a[0]), 0.0}; };
}
InDoubles in_doubles(double (*exact)(double, double)) {
  return [exact](const Doubles& a) { return std::array{exact(a[0], a[1]), 0.0}; };
}
InDoubles in_doubles(double (*exact)(double, double, double)) {
  return [exact](const Doubles& a) { return std::array{exact(a[0], a[1], a[2]), 0.0}; };
}
InDoubles in_doubles(double (*exact)(double, double, double, double)) {
  return [exact](const Doubles& a) { return std::array{exact(a[0], a[1], a[2], a[3]), 0.0}; };
}
InDoubles in_doubles(std::array<double, most_results> (*exact)(double)) {
  return [exact](const Doubles& a) { return exact(a[0]); };
}
InDoubles in_doubles(std::array<double, most_results> (*exact)(double, double)) {
  return [exact](const Doubles& a) { return exact(a[0], a[1]); };
}

Function function_of(std::string_view name, std::string_view meaning, const ProgramCode& code,
                     InDoubles exact) {
  Function function;
  function.name = name;
  function.arch = "sm_90";
  function.meaning = meaning;
  function.operands = code.operands;
  function.results = code.results;
  function.formats = *code.formats;
  function.evidence = code.operands == 1 ? all_results : drawn_results;
  function.run = code.run;
  function.reference = code.reference;
  function.steps = [reference = code.reference](const OperandCodes& operands) {
    return steps_of(reference, operands);
  };
  function.in_doubles = std::move(exact);
  return function;
}

}  // namespace guardbit::emulator
