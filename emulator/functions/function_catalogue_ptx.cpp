#include <cmath>

#include "emulator/functions/function_catalogue.hpp"
#include "emulator/functions/function_program.hpp"
#include "emulator/functions/unit/special_function_forms.hpp"

namespace guardbit::emulator {

namespace {

/// A form of the unit as a program.
template <const mufu::SpecialFunctionForm& form>
struct FormProgram {
  template <class Number>
  constexpr Number operator()(Number x) const {
    return evaluate(form, x);
  }
};

template <const mufu::SpecialFunctionForm& form>
Function form_of_unit(std::string_view meaning, double (*in_doubles)(double, double)) {
  Function function = function_of(form.name, meaning, FormProgram<form>(), in_doubles);
  function.form = &form;
  return function;
}

}  // namespace

std::vector<Function> ptx_functions() {
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

}  // namespace guardbit::emulator
