#include <algorithm>
#include <cmath>

#include "emulator/functions/function_catalogue.hpp"
#include "emulator/functions/function_program.hpp"
#include "emulator/functions/rounded_instruction.hpp"
#include "emulator/functions/unit/double_rsqrt.hpp"
#include "emulator/functions/unit/special_function_formats.hpp"

// Instructions of PTX whose steps are integers alone: of other formats than FP32, and those that
// round once.
namespace guardbit::emulator {

namespace {

using Doubles = std::array<double, most_operands>;

template <class Word, class Evaluate>
auto run_of(const Evaluate& evaluate, std::size_t operands) {
  return [evaluate, operands](const CodeArrays<Word>& arrays) {
    for (std::size_t i = 0; i < arrays.results[0].size(); ++i) {
      OperandCodes codes{};
      for (std::size_t k = 0; k < operands; ++k) codes[k] = arrays.operands[k][i];
      arrays.results[0][i] = static_cast<Word>(evaluate(codes));
    }
  };
}

/// A function whose operands and result have one format, from what computes one code.
template <class Evaluate>
Function integer_function(std::string_view name, std::string_view meaning,
                          const formats::Format& format, std::size_t operands, Evaluate evaluate,
                          double (*exact)(const Doubles&)) {
  Function function;
  function.name = name;
  function.arch = "sm_90";
  function.meaning = meaning;
  function.operands = operands;
  function.formats = formats_of(format);
  if (formats::bits(format) > 32) {
    function.run_wide = run_of<std::uint64_t>(evaluate, operands);
  } else {
    function.run = run_of<std::uint32_t>(evaluate, operands);
  }
  function.reference = [evaluate](const OperandCodes& codes) {
    return ResultCodes{evaluate(codes)};
  };
  function.steps = [](const OperandCodes&) { return std::vector<ProgramStep>(); };
  function.in_doubles = [exact](const Doubles& a) { return std::array{exact(a), 0.0}; };
  return function;
}

constexpr Evidence both_elements = {Basis::inferred, "each element as the form of one has it"};
constexpr Evidence high_words = {Basis::measured,
                                 "H100, CUDA 13.0: digest of the results of all 2^32 high words"};
constexpr Evidence drawn_operands_of_h200 = {
    Basis::measured, "H200, CUDA 13.0: digest of the results of 2^24 drawn operands"};

struct Meaning {
  const mufu::UnitFunction* function;
  std::string_view text;
  double (*exact)(const Doubles&);
};
double root_reciprocal_of(const Doubles& a) { return 1 / std::sqrt(a[0]); }
constexpr std::array<Meaning, 4> unit_meanings = {
    {{&mufu::ex2, "2^x", [](const Doubles& a) { return std::exp2(a[0]); }},
     {&mufu::tanh, "tanh(x)", [](const Doubles& a) { return std::tanh(a[0]); }},
     {&mufu::rcp, "1 / x", [](const Doubles& a) { return 1 / a[0]; }},
     {&mufu::rsqrt, "1 / sqrt(x)", root_reciprocal_of}}};

std::vector<Function> forms_of_unit() {
  std::vector<Function> all;
  for (const mufu::FormattedForm& form : mufu::formatted_forms) {
    const auto* const meaning = std::ranges::find(unit_meanings, form.function, &Meaning::function);
    Function function = integer_function(
        form.name, meaning->text, format_of(form.operand), 1,
        [&form](const OperandCodes& codes) { return mufu::evaluate(form, codes[0]); },
        meaning->exact);
    function.formatted_form = &form;
    function.evidence = form.operand == mufu::UnitOperand::high_word ? high_words
                        : form.name.ends_with("x2")                  ? both_elements
                                                                     : all_codes_of_16_bits;
    all.push_back(function);
  }
  all.push_back(integer_function(
      "rsqrt.approx.f64", "1 / sqrt(x)", formats::fp64, 1,
      [](const OperandCodes& codes) { return mufu::rsqrt_approx_f64(codes[0]); },
      root_reciprocal_of));
  all.back().evidence = high_words;
  return all;
}

struct RoundedMeaning {
  std::string_view text;
  double (*exact)(const Doubles&);
};
constexpr RoundedMeaning meaning_of(RoundedOperation operation) {
  switch (operation) {
    case RoundedOperation::add: return {"x + y", [](const Doubles& a) { return a[0] + a[1]; }};
    case RoundedOperation::sub: return {"x - y", [](const Doubles& a) { return a[0] - a[1]; }};
    case RoundedOperation::mul: return {"x y", [](const Doubles& a) { return a[0] * a[1]; }};
    case RoundedOperation::fma:
    case RoundedOperation::mad:
      return {"x y + z", [](const Doubles& a) { return std::fma(a[0], a[1], a[2]); }};
    case RoundedOperation::rcp: return {"1 / x", [](const Doubles& a) { return 1 / a[0]; }};
    case RoundedOperation::sqrt:
      return {"sqrt(x)", [](const Doubles& a) { return std::sqrt(a[0]); }};
    case RoundedOperation::div: return {"x / y", [](const Doubles& a) { return a[0] / a[1]; }};
  }
  return {};
}

double limited(ResultLimit limit, double x) {
  switch (limit) {
    case ResultLimit::none: return x;
    case ResultLimit::sat: return x > 0 ? std::min(x, 1.0) : 0;
    case ResultLimit::relu: return x < 0 ? 0 : x;
  }
  return x;
}

Function rounded_function(std::string_view name, const RoundedInstruction& instruction) {
  const RoundedMeaning meaning = meaning_of(instruction.operation);
  Function function = integer_function(
      name, meaning.text, instruction.format, operands_of(instruction.operation),
      [i = instruction](const OperandCodes& codes) { return evaluate(i, codes); }, meaning.exact);
  function.in_doubles = [exact = meaning.exact, limit = instruction.limit](const Doubles& a) {
    return std::array{limited(limit, exact(a)), 0.0};
  };
  return function;
}

/// Those of FP32 that divide or take roots are programs (function_catalogue_ptx.cpp).
bool is_program(const RoundedInstruction& i) {
  return i.format == formats::fp32 &&
         (i.operation == RoundedOperation::rcp || i.operation == RoundedOperation::sqrt ||
          i.operation == RoundedOperation::div);
}

std::vector<Function> rounded_functions() {
  std::vector<Function> all;
  for (const auto& [name, instruction] : rounded_instructions()) {
    if (is_program(instruction)) continue;
    all.push_back(rounded_function(name, instruction));
    all.back().evidence = drawn_operands_of_h200;
  }
  return all;
}

/// CUDA's arithmetic of FP16 and BF16 numbers, which is an instruction each, or several whose
/// results are the same.
struct CudaArithmetic {
  std::string_view half, bfloat16;
  RoundedOperation operation;
  ResultLimit limit = ResultLimit::none;
};
constexpr std::array<CudaArithmetic, 12> cuda_arithmetic = {{
    {"__hadd(half)", "__hadd(bfloat16)", RoundedOperation::add},
    {"__hsub(half)", "__hsub(bfloat16)", RoundedOperation::sub},
    {"__hmul(half)", "__hmul(bfloat16)", RoundedOperation::mul},
    {"__hadd_rn(half)", "__hadd_rn(bfloat16)", RoundedOperation::add},
    {"__hsub_rn(half)", "__hsub_rn(bfloat16)", RoundedOperation::sub},
    {"__hmul_rn(half)", "__hmul_rn(bfloat16)", RoundedOperation::mul},
    {"__hadd_sat(half)", "__hadd_sat(bfloat16)", RoundedOperation::add, ResultLimit::sat},
    {"__hsub_sat(half)", "__hsub_sat(bfloat16)", RoundedOperation::sub, ResultLimit::sat},
    {"__hmul_sat(half)", "__hmul_sat(bfloat16)", RoundedOperation::mul, ResultLimit::sat},
    {"__hfma(half)", "__hfma(bfloat16)", RoundedOperation::fma},
    {"__hfma_sat(half)", "__hfma_sat(bfloat16)", RoundedOperation::fma, ResultLimit::sat},
    {"__hfma_relu(half)", "__hfma_relu(bfloat16)", RoundedOperation::fma, ResultLimit::relu},
}};

}  // namespace

std::vector<Function> cuda_arithmetic_of_halves() {
  std::vector<Function> all;
  for (const CudaArithmetic& a : cuda_arithmetic) {
    for (const auto& [name, format] :
         {std::pair(a.half, formats::fp16), std::pair(a.bfloat16, formats::bf16)}) {
      all.push_back(
          rounded_function(name, {.operation = a.operation, .format = format, .limit = a.limit}));
      all.back().evidence = {Basis::inferred,
                             "as nvcc 13.0 compiles it, of parts that are measured"};
    }
  }
  return all;
}

std::vector<Function> ptx_functions_of_formats() {
  std::vector<Function> all = forms_of_unit();
  const std::vector<Function> rounded = rounded_functions();
  all.insert(all.end(), rounded.begin(), rounded.end());
  return all;
}

}  // namespace guardbit::emulator
