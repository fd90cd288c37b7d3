#include "emulator/functions/function_toolkits.hpp"

#include <string>
#include <string_view>

#include "emulator/catalogue/instruction_catalogue.hpp"
#include "formats/support/error.hpp"

namespace guardbit::emulator {

namespace {

// Names, each with a blank behind it. tests/recorders/toolkits/compare_toolkits.py compared what
// the compilers of CUDA 12.0 to 13.0 make of them.
constexpr std::string_view since_12_0 =
    "atanhf ceilf copysignf __cosf cosf coshf cyl_bessel_i0f cyl_bessel_i1f erfcf erfcxf "
    "__exp10f exp10f exp2f __expf expf expm1f fabsf __fadd_rd __fadd_rn __fadd_ru __fadd_rz "
    "fdimf __fdiv_rd __fdiv_rn __fdiv_ru __fdiv_rz __fdividef fdividef floorf fmaf "
    "__fmaf_ieee_rd __fmaf_ieee_rn __fmaf_ieee_ru __fmaf_ieee_rz __fmaf_rd __fmaf_rn "
    "__fmaf_ru __fmaf_rz fmaxf fminf fmodf __fmul_rd __fmul_rn __fmul_ru __fmul_rz __frcp_rd "
    "__frcp_rn __frcp_ru __frcp_rz frexpf __frsqrt_rn __fsqrt_rd __fsqrt_rn __fsqrt_ru "
    "__fsqrt_rz __fsub_rd __fsub_rn __fsub_ru __fsub_rz hypotf ilogbf j0f j1f jnf ldexpf "
    "lgammaf __log10f log10f log1pf __log2f log2f logbf __logf logf modff nearbyintf "
    "nextafterf norm3df norm4df normcdff __powf rcbrtf remainderf remquof rhypotf rintf "
    "rnorm3df rnorm4df roundf rsqrtf __saturatef scalbnf __sincosf sincosf __sinf sinf sinhf "
    "sqrtf __tanf tanf tanhf truncf y0f y1f ynf ";
constexpr std::string_view since_12_1 = "acosf asinf atanf cospif erff powf sinpif tgammaf ";
constexpr std::string_view since_12_3 = "sincospif ";

bool has(std::string_view names, std::string_view name) {
  while (!names.empty()) {
    const std::size_t end = names.find(' ');
    if (names.substr(0, end) == name) return true;
    names.remove_prefix(end + 1);
  }
  return false;
}

}  // namespace

int oldest_toolkit(const Function& function) {
  if (function.compile != CompileMode::standard) return newest_toolkit;
  if (has(since_12_0, function.name)) return 1200;
  if (has(since_12_1, function.name)) return 1201;
  if (has(since_12_3, function.name)) return 1203;
  return newest_toolkit;
}

bool has_toolkit(const Function& function) { return function.arch.starts_with("sm_"); }

bool is_known_of(const Function& function, int toolkit) {
  return has_toolkit(function) && oldest_toolkit(function) <= toolkit && toolkit <= newest_toolkit;
}

int require_function_toolkit(const Function& function, std::string_view version,
                             const std::string& where) {
  const int toolkit = require_toolkit(version, where);
  const std::string name(function.name);
  if (!has_toolkit(function)) {
    if (version.empty()) return toolkit;
    throw formats::Error(where, name + " is an instruction of " + std::string(function.arch) +
                                    ", which no toolkit of CUDA compiles");
  }
  if (is_known_of(function, toolkit)) return toolkit;
  const int oldest = oldest_toolkit(function);
  throw formats::Error(where,
                       name + " is known as CUDA " + version_text(newest_toolkit) +
                           " computes it, not " + version_text(toolkit),
                       oldest == newest_toolkit
                           ? version_text(oldest)
                           : version_text(oldest) + " to " + version_text(newest_toolkit));
}

}  // namespace guardbit::emulator
