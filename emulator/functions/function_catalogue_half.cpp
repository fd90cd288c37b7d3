#include <cmath>

#include "emulator/functions/cuda/cuda_half.hpp"
#include "emulator/functions/function_catalogue.hpp"
#include "emulator/functions/function_program.hpp"

namespace guardbit::emulator {

namespace {

constexpr FunctionFormats formats_of_half = formats_of(formats::fp16),
                          formats_of_bfloat16 = formats_of(formats::bf16);

constexpr Evidence by_disassembly = {Basis::inferred,
                                     "as nvcc 13.0 compiles it, of parts that are measured"};

template <const FunctionFormats& formats, class Program, class Exact>
Function narrow_function(std::string_view name, std::string_view meaning, Program program,
                         Exact exact) {
  Function function = function_of<formats>(name, meaning, program, exact);
  function.evidence = function.operands == 1 ? all_codes_of_16_bits : by_disassembly;
  return function;
}

double exact_exp10(double x) { return std::pow(10, x); }
double exact_reciprocal(double x) { return 1 / x; }
double exact_root_reciprocal(double x) { return 1 / std::sqrt(x); }
double exact_quotient(double x, double y) { return x / y; }

// The host's functions, by one type each: they have overloads.
constexpr auto exact_exp = [](double x) { return std::exp(x); };
constexpr auto exact_exp2 = [](double x) { return std::exp2(x); };
constexpr auto exact_log = [](double x) { return std::log(x); };
constexpr auto exact_log2 = [](double x) { return std::log2(x); };
constexpr auto exact_log10 = [](double x) { return std::log10(x); };
constexpr auto exact_sin = [](double x) { return std::sin(x); };
constexpr auto exact_cos = [](double x) { return std::cos(x); };
constexpr auto exact_tanh = [](double x) { return std::tanh(x); };
constexpr auto exact_root = [](double x) { return std::sqrt(x); };

std::vector<Function> half_functions() {
  using namespace cuda_math;
  constexpr auto entry = [](std::string_view name, std::string_view meaning, auto program,
                            auto exact) {
    return narrow_function<formats_of_half>(name, meaning, program, exact);
  };
  return {
      entry(
          "hexp(half)", "e^x", [](auto x) { return half::exp(x); }, exact_exp),
      entry(
          "hexp2(half)", "2^x", [](auto x) { return half::exp2(x); }, exact_exp2),
      entry(
          "hexp10(half)", "10^x", [](auto x) { return half::exp10(x); }, exact_exp10),
      entry(
          "hlog(half)", "log(x)", [](auto x) { return half::log(x); }, exact_log),
      entry(
          "hlog2(half)", "log2(x)", [](auto x) { return half::log2(x); }, exact_log2),
      entry(
          "hlog10(half)", "log10(x)", [](auto x) { return half::log10(x); }, exact_log10),
      entry(
          "hsin(half)", "sin(x)", [](auto x) { return half::sin(x); }, exact_sin),
      entry(
          "hcos(half)", "cos(x)", [](auto x) { return half::cos(x); }, exact_cos),
      entry(
          "htanh(half)", "tanh(x)", [](auto x) { return tanhf(x); }, exact_tanh),
      entry(
          "hrcp(half)", "1 / x", [](auto x) { return mufu::rcp_approx_ftz(x); }, exact_reciprocal),
      entry(
          "hrsqrt(half)", "1 / sqrt(x)", [](auto x) { return mufu::rsqrt_approx_ftz(x); },
          exact_root_reciprocal),
      entry(
          "hsqrt(half)", "sqrt(x)", [](auto x) { return mufu::sqrt_approx_ftz(x); }, exact_root),
      entry(
          "__hdiv(half)", "x / y", [](auto x, auto y) { return half::divide(x, y); },
          exact_quotient),
  };
}

std::vector<Function> bfloat16_functions() {
  using namespace cuda_math;
  constexpr auto entry = [](std::string_view name, std::string_view meaning, auto program,
                            auto exact) {
    return narrow_function<formats_of_bfloat16>(name, meaning, program, exact);
  };
  return {
      entry(
          "hexp(bfloat16)", "e^x", [](auto x) { return bfloat16::exp(x); }, exact_exp),
      entry(
          "hexp2(bfloat16)", "2^x", [](auto x) { return mufu::ex2_approx(x); }, exact_exp2),
      entry(
          "hexp10(bfloat16)", "10^x", [](auto x) { return bfloat16::exp10(x); }, exact_exp10),
      entry(
          "hlog(bfloat16)", "log(x)", [](auto x) { return bfloat16::log(x); }, exact_log),
      entry(
          "hlog2(bfloat16)", "log2(x)", [](auto x) { return mufu::lg2_approx(x); }, exact_log2),
      entry(
          "hlog10(bfloat16)", "log10(x)", [](auto x) { return bfloat16::log10(x); }, exact_log10),
      entry(
          "hsin(bfloat16)", "sin(x)", [](auto x) { return sinf(x); }, exact_sin),
      entry(
          "hcos(bfloat16)", "cos(x)", [](auto x) { return cosf(x); }, exact_cos),
      entry(
          "htanh(bfloat16)", "tanh(x)", [](auto x) { return mufu::tanh_approx(x); }, exact_tanh),
      entry(
          "hrcp(bfloat16)", "1 / x", [](auto x) { return mufu::rcp_approx(x); }, exact_reciprocal),
      entry(
          "hrsqrt(bfloat16)", "1 / sqrt(x)", [](auto x) { return mufu::rsqrt_approx(x); },
          exact_root_reciprocal),
      entry(
          "hsqrt(bfloat16)", "sqrt(x)", [](auto x) { return mufu::sqrt_approx(x); }, exact_root),
      entry(
          "__hdiv(bfloat16)", "x / y", [](auto x, auto y) { return bfloat16::divide(x, y); },
          exact_quotient),
  };
}

}  // namespace

std::vector<Function> cuda_functions_of_halves(CompileMode mode) {
  std::vector<Function> all = half_functions();
  const std::vector<Function> bfloat16 = bfloat16_functions();
  all.insert(all.end(), bfloat16.begin(), bfloat16.end());
  if (mode == CompileMode::standard) return all;
  // Flushing changes none of them; -use_fast_math changes those that are made of a function of
  // FP32.
  std::erase_if(all, [](const Function& function) { return function.operands != 1; });
  if (mode == CompileMode::fast) {
    std::erase_if(all, [](const Function& function) {
      return function.name == "htanh(half)" || function.name == "hsin(bfloat16)" ||
             function.name == "hcos(bfloat16)";
    });
    const auto tanh = [](auto x) { return mufu::tanh_approx(x); };
    const auto sin = [](auto x) { return select(flushed(x) == 0, x, mufu::sin_approx(x)); };
    const auto cos = [](auto x) { return mufu::cos_approx(x); };
    all.push_back(narrow_function<formats_of_half>("htanh(half)", "tanh(x)", tanh, exact_tanh));
    all.push_back(narrow_function<formats_of_bfloat16>("hsin(bfloat16)", "sin(x)", sin, exact_sin));
    all.push_back(narrow_function<formats_of_bfloat16>("hcos(bfloat16)", "cos(x)", cos, exact_cos));
  }
  for (Function& function : all) {
    function.compile = mode;
    function.evidence.source = mode == CompileMode::ftz
                                   ? "H100, CUDA 13.0, -ftz=true: digest of all 2^16 results"
                                   : "H100, CUDA 13.0, -use_fast_math: digest of all 2^16 results";
  }
  return all;
}

}  // namespace guardbit::emulator
