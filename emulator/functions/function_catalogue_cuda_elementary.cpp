#include <cmath>

#include "emulator/functions/cuda/cuda_exponentials.hpp"
#include "emulator/functions/cuda/cuda_hyperbolics.hpp"
#include "emulator/functions/cuda/cuda_logarithms.hpp"
#include "emulator/functions/cuda/cuda_trigonometry.hpp"
#include "emulator/functions/cuda_catalogue.hpp"
#include "emulator/functions/exact_functions.hpp"
#include "emulator/functions/unit/special_function_forms.hpp"

namespace guardbit::emulator {

namespace {

/// The sine and the cosine of doubles, two results.
std::array<double, most_results> exact_sine_and_cosine(double x) {
  return {std::sin(x), std::cos(x)};
}
std::array<double, most_results> exact_sine_and_cosine_of_pi(double x) {
  return {exact::sin_of_pi(x), exact::cos_of_pi(x)};
}

}  // namespace

void add_elementary_functions(CudaCatalogue& all) {
  using namespace cuda_math;
  all.add_with_fast(
      "expf", "e^x", [](auto x) { return expf(x); }, [](auto x) { return intrinsic_expf(x); },
      [](double x) { return std::exp(x); });
  all.add(
      "exp2f", "2^x", [](auto x) { return exp2f(x); }, [](double x) { return std::exp2(x); });
  all.add_with_fast(
      "exp10f", "10^x", [](auto x) { return exp10f(x); },
      [](auto x) { return intrinsic_exp10f(x); }, exact::exp10);
  all.add(
      "expm1f", "e^x - 1", [](auto x) { return expm1f(x); },
      [](double x) { return std::expm1(x); });
  all.add_with_fast(
      "logf", "log(x)", [](auto x) { return logf(x); }, [](auto x) { return intrinsic_logf(x); },
      [](double x) { return std::log(x); });
  all.add_with_fast(
      "log2f", "log2(x)", [](auto x) { return log2f(x); },
      [](auto x) { return mufu::lg2_approx(x); }, [](double x) { return std::log2(x); });
  all.add_with_fast(
      "log10f", "log10(x)", [](auto x) { return log10f(x); },
      [](auto x) { return intrinsic_log10f(x); }, [](double x) { return std::log10(x); });
  all.add(
      "log1pf", "log(1 + x)", [](auto x) { return log1pf(x); },
      [](double x) { return std::log1p(x); });
  all.add_with_fast(
      "tanhf", "tanh(x)", [](auto x) { return tanhf(x); },
      [](auto x) { return mufu::tanh_approx(x); }, [](double x) { return std::tanh(x); });
  all.add(
      "sinhf", "sinh(x)", [](auto x) { return sinhf(x); }, [](double x) { return std::sinh(x); });
  all.add(
      "coshf", "cosh(x)", [](auto x) { return coshf(x); }, [](double x) { return std::cosh(x); });
  all.add(
      "asinhf", "asinh(x)", [](auto x) { return asinhf(x); },
      [](double x) { return std::asinh(x); });
  all.add(
      "acoshf", "acosh(x)", [](auto x) { return acoshf(x); },
      [](double x) { return std::acosh(x); });
  all.add(
      "atanhf", "atanh(x)", [](auto x) { return atanhf(x); },
      [](double x) { return std::atanh(x); });
  all.add_with_fast(
      "sinf", "sin(x)", [](auto x) { return sinf(x); }, [](auto x) { return mufu::sin_approx(x); },
      [](double x) { return std::sin(x); });
  all.add_with_fast(
      "cosf", "cos(x)", [](auto x) { return cosf(x); }, [](auto x) { return mufu::cos_approx(x); },
      [](double x) { return std::cos(x); });
  all.add_with_fast(
      "tanf", "tan(x)", [](auto x) { return tanf(x); }, [](auto x) { return intrinsic_tanf(x); },
      [](double x) { return std::tan(x); });
  all.add(
      "asinf", "asin(x)", [](auto x) { return asinf(x); }, [](double x) { return std::asin(x); });
  all.add(
      "acosf", "acos(x)", [](auto x) { return acosf(x); }, [](double x) { return std::acos(x); });
  all.add(
      "atanf", "atan(x)", [](auto x) { return atanf(x); }, [](double x) { return std::atan(x); });
  all.add(
      "atan2f", "the angle of (y, x): x is the ordinate, y the abscissa",
      [](auto x, auto y) { return atan2f(x, y); },
      [](double x, double y) { return std::atan2(x, y); });
  all.add(
      "sinpif", "sin(pi x)", [](auto x) { return sinpif(x); }, exact::sin_of_pi);
  all.add(
      "cospif", "cos(pi x)", [](auto x) { return cospif(x); }, exact::cos_of_pi);
  all.add(
      "__expf", "e^x", [](auto x) { return intrinsic_expf(x); },
      [](double x) { return std::exp(x); });
  all.add(
      "__exp10f", "10^x", [](auto x) { return intrinsic_exp10f(x); }, exact::exp10);
  all.add(
      "__logf", "log(x)", [](auto x) { return intrinsic_logf(x); },
      [](double x) { return std::log(x); });
  all.add(
      "__log2f", "log2(x)", [](auto x) { return mufu::lg2_approx(x); },
      [](double x) { return std::log2(x); });
  all.add(
      "__log10f", "log10(x)", [](auto x) { return intrinsic_log10f(x); },
      [](double x) { return std::log10(x); });
  all.add(
      "__sinf", "sin(x)", [](auto x) { return mufu::sin_approx(x); },
      [](double x) { return std::sin(x); });
  all.add(
      "__cosf", "cos(x)", [](auto x) { return mufu::cos_approx(x); },
      [](double x) { return std::cos(x); });
  all.add(
      "__tanf", "tan(x)", [](auto x) { return intrinsic_tanf(x); },
      [](double x) { return std::tan(x); });
  all.add(
      "__tanhf", "tanh(x)", [](auto x) { return mufu::tanh_approx(x); },
      [](double x) { return std::tanh(x); });
  const auto unit_sine_and_cosine = [](auto x) {
    return std::pair(mufu::sin_approx(x), mufu::cos_approx(x));
  };
  all.add_with_fast(
      "sincosf", "sin(x) and cos(x)", [](auto x) { return std::pair(sinf(x), cosf(x)); },
      unit_sine_and_cosine, exact_sine_and_cosine);
  all.add("__sincosf", "sin(x) and cos(x)", unit_sine_and_cosine, exact_sine_and_cosine);
  all.add(
      "sincospif", "sin(pi x) and cos(pi x)",
      [](auto x) { return std::pair(sinpif(x), cospif(x)); }, exact_sine_and_cosine_of_pi);
}

}  // namespace guardbit::emulator
