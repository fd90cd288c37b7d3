#include <cmath>
#include <type_traits>

#include "emulator/functions/function_catalogue.hpp"
#include "emulator/functions/function_program.hpp"
#include "emulator/functions/unit/instruction_programs.hpp"
#include "emulator/functions/unit/quotients.hpp"
#include "emulator/functions/unit/special_function_forms.hpp"

namespace guardbit::emulator {

namespace {

template <const mufu::SpecialFunctionForm& form>
Function form_of_unit(std::string_view meaning, double (*in_doubles)(double, double)) {
  Function function = function_of(form.name, meaning, FormProgram<form>(), in_doubles);
  function.form = &form;
  return function;
}

double reciprocal_of(double x, double) { return 1 / x; }
double root_of(double x, double) { return std::sqrt(x); }
double quotient_of(double x, double y) { return x / y; }

std::vector<Function> divisions_and_roots() {
  using enum formats::Rounding;
  return {
      function_of("rcp.rn.f32", "1 / x", Reciprocal<nearest_even>(), reciprocal_of),
      function_of("rcp.rz.f32", "1 / x", Reciprocal<toward_zero>(), reciprocal_of),
      function_of("rcp.rm.f32", "1 / x", Reciprocal<downward>(), reciprocal_of),
      function_of("rcp.rp.f32", "1 / x", Reciprocal<upward>(), reciprocal_of),
      function_of("rcp.rn.ftz.f32", "1 / x", Flushed<Reciprocal, nearest_even>(), reciprocal_of),
      function_of("rcp.rz.ftz.f32", "1 / x", Flushed<Reciprocal, toward_zero>(), reciprocal_of),
      function_of("rcp.rm.ftz.f32", "1 / x", Flushed<Reciprocal, downward>(), reciprocal_of),
      function_of("rcp.rp.ftz.f32", "1 / x", Flushed<Reciprocal, upward>(), reciprocal_of),
      function_of("sqrt.rn.f32", "sqrt(x)", Root<nearest_even>(), root_of),
      function_of("sqrt.rz.f32", "sqrt(x)", Root<toward_zero>(), root_of),
      function_of("sqrt.rm.f32", "sqrt(x)", Root<downward>(), root_of),
      function_of("sqrt.rp.f32", "sqrt(x)", Root<upward>(), root_of),
      function_of("sqrt.rn.ftz.f32", "sqrt(x)", Flushed<Root, nearest_even>(), root_of),
      function_of("sqrt.rz.ftz.f32", "sqrt(x)", Flushed<Root, toward_zero>(), root_of),
      function_of("sqrt.rm.ftz.f32", "sqrt(x)", Flushed<Root, downward>(), root_of),
      function_of("sqrt.rp.ftz.f32", "sqrt(x)", Flushed<Root, upward>(), root_of),
      function_of("div.rn.f32", "x / y", Quotient<nearest_even>(), quotient_of),
      function_of("div.rz.f32", "x / y", Quotient<toward_zero>(), quotient_of),
      function_of("div.rm.f32", "x / y", Quotient<downward>(), quotient_of),
      function_of("div.rp.f32", "x / y", Quotient<upward>(), quotient_of),
      function_of("div.rn.ftz.f32", "x / y", Flushed<Quotient, nearest_even>(), quotient_of),
      function_of("div.rz.ftz.f32", "x / y", Flushed<Quotient, toward_zero>(), quotient_of),
      function_of("div.rm.ftz.f32", "x / y", Flushed<Quotient, downward>(), quotient_of),
      function_of("div.rp.ftz.f32", "x / y", Flushed<Quotient, upward>(), quotient_of),
      function_of(
          "div.approx.f32", "x / y", [](auto x, auto y) { return mufu::div_approx(x, y); },
          quotient_of),
      function_of(
          "div.approx.ftz.f32", "x / y", [](auto x, auto y) { return mufu::div_approx_ftz(x, y); },
          quotient_of),
      function_of(
          "div.full.f32", "x / y", [](auto x, auto y) { return mufu::div_full(x, y); },
          quotient_of),
      function_of(
          "div.full.ftz.f32", "x / y", [](auto x, auto y) { return mufu::div_full_ftz(x, y); },
          quotient_of)};
}

std::vector<Function> unit_forms() {
  using namespace mufu;
  const auto exp2 = [](double x, double) { return std::exp2(x); };
  const auto log2 = [](double x, double) { return std::log2(x); };
  const auto reciprocal = [](double x, double) { return 1 / x; };
  const auto rsqrt = [](double x, double) { return 1 / std::sqrt(x); };
  const auto root = [](double x, double) { return std::sqrt(x); };
  const auto sine = [](double x, double) { return std::sin(x); };
  const auto cosine = [](double x, double) { return std::cos(x); };
  const auto tangent = [](double x, double) { return std::tanh(x); };
  return {form_of_unit<ex2_approx_form>("2^x", exp2),
          form_of_unit<ex2_approx_ftz_form>("2^x", exp2),
          form_of_unit<lg2_approx_form>("log2(x)", log2),
          form_of_unit<lg2_approx_ftz_form>("log2(x)", log2),
          form_of_unit<rcp_approx_form>("1 / x", reciprocal),
          form_of_unit<rcp_approx_ftz_form>("1 / x", reciprocal),
          form_of_unit<rsqrt_approx_form>("1 / sqrt(x)", rsqrt),
          form_of_unit<rsqrt_approx_ftz_form>("1 / sqrt(x)", rsqrt),
          form_of_unit<sqrt_approx_form>("sqrt(x)", root),
          form_of_unit<sqrt_approx_ftz_form>("sqrt(x)", root),
          form_of_unit<sin_approx_form>("sin(x)", sine),
          form_of_unit<sin_approx_ftz_form>("sin(x)", sine),
          form_of_unit<cos_approx_form>("cos(x)", cosine),
          form_of_unit<cos_approx_ftz_form>("cos(x)", cosine),
          form_of_unit<tanh_approx_form>("tanh(x)", tangent)};
}

}  // namespace

std::vector<Function> ptx_functions() {
  std::vector<Function> all = unit_forms();
  const std::vector<Function> rounded = divisions_and_roots();
  all.insert(all.end(), rounded.begin(), rounded.end());
  return all;
}

}  // namespace guardbit::emulator
