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

double exp10_of_double(double x) { return std::pow(10, x); }
double reciprocal_of_double(double x) { return 1 / x; }
double root_reciprocal_of_double(double x) { return 1 / std::sqrt(x); }
double quotient_of_double(double x, double y) { return x / y; }

// The host's functions, by one type each: they have overloads.
constexpr auto exp_of = [](double x) { return std::exp(x); };
constexpr auto exp2_of = [](double x) { return std::exp2(x); };
constexpr auto log_of = [](double x) { return std::log(x); };
constexpr auto log2_of = [](double x) { return std::log2(x); };
constexpr auto log10_of = [](double x) { return std::log10(x); };
constexpr auto sin_of = [](double x) { return std::sin(x); };
constexpr auto cos_of = [](double x) { return std::cos(x); };
constexpr auto tanh_of = [](double x) { return std::tanh(x); };
constexpr auto root_of = [](double x) { return std::sqrt(x); };

std::vector<Function> half_functions() {
  using namespace cuda_math;
  constexpr auto entry = [](std::string_view name, std::string_view meaning, auto program,
                            auto exact) {
    return narrow_function<formats_of_half>(name, meaning, program, exact);
  };
  return {
      entry(
          "hexp(half)", "e^x", [](auto x) { return half::exp(x); }, exp_of),
      entry(
          "hexp2(half)", "2^x", [](auto x) { return half::exp2(x); }, exp2_of),
      entry(
          "hexp10(half)", "10^x", [](auto x) { return half::exp10(x); }, exp10_of_double),
      entry(
          "hlog(half)", "log(x)", [](auto x) { return half::log(x); }, log_of),
      entry(
          "hlog2(half)", "log2(x)", [](auto x) { return half::log2(x); }, log2_of),
      entry(
          "hlog10(half)", "log10(x)", [](auto x) { return half::log10(x); }, log10_of),
      entry(
          "hsin(half)", "sin(x)", [](auto x) { return half::sin(x); }, sin_of),
      entry(
          "hcos(half)", "cos(x)", [](auto x) { return half::cos(x); }, cos_of),
      entry(
          "htanh(half)", "tanh(x)", [](auto x) { return tanhf(x); }, tanh_of),
      entry(
          "hrcp(half)", "1 / x", [](auto x) { return mufu::rcp_approx_ftz(x); },
          reciprocal_of_double),
      entry(
          "hrsqrt(half)", "1 / sqrt(x)", [](auto x) { return mufu::rsqrt_approx_ftz(x); },
          root_reciprocal_of_double),
      entry(
          "hsqrt(half)", "sqrt(x)", [](auto x) { return mufu::sqrt_approx_ftz(x); }, root_of),
      entry(
          "__hdiv(half)", "x / y", [](auto x, auto y) { return half::divide(x, y); },
          quotient_of_double),
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
          "hexp(bfloat16)", "e^x", [](auto x) { return bfloat16::exp(x); }, exp_of),
      entry(
          "hexp2(bfloat16)", "2^x", [](auto x) { return mufu::ex2_approx(x); }, exp2_of),
      entry(
          "hexp10(bfloat16)", "10^x", [](auto x) { return bfloat16::exp10(x); }, exp10_of_double),
      entry(
          "hlog(bfloat16)", "log(x)", [](auto x) { return bfloat16::log(x); }, log_of),
      entry(
          "hlog2(bfloat16)", "log2(x)", [](auto x) { return mufu::lg2_approx(x); }, log2_of),
      entry(
          "hlog10(bfloat16)", "log10(x)", [](auto x) { return bfloat16::log10(x); }, log10_of),
      entry(
          "hsin(bfloat16)", "sin(x)", [](auto x) { return sinf(x); }, sin_of),
      entry(
          "hcos(bfloat16)", "cos(x)", [](auto x) { return cosf(x); }, cos_of),
      entry(
          "htanh(bfloat16)", "tanh(x)", [](auto x) { return mufu::tanh_approx(x); }, tanh_of),
      entry(
          "hrcp(bfloat16)", "1 / x", [](auto x) { return mufu::rcp_approx(x); },
          reciprocal_of_double),
      entry(
          "hrsqrt(bfloat16)", "1 / sqrt(x)", [](auto x) { return mufu::rsqrt_approx(x); },
          root_reciprocal_of_double),
      entry(
          "hsqrt(bfloat16)", "sqrt(x)", [](auto x) { return mufu::sqrt_approx(x); }, root_of),
      entry(
          "__hdiv(bfloat16)", "x / y", [](auto x, auto y) { return bfloat16::divide(x, y); },
          quotient_of_double),
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
    all.push_back(narrow_function<formats_of_half>("htanh(half)", "tanh(x)", tanh, tanh_of));
    all.push_back(narrow_function<formats_of_bfloat16>("hsin(bfloat16)", "sin(x)", sin, sin_of));
    all.push_back(narrow_function<formats_of_bfloat16>("hcos(bfloat16)", "cos(x)", cos, cos_of));
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
