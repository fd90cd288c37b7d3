#pragma once

// The programs that are kernels, by their names in the catalogue. Included behind
// `#pragma GCC target`, so that their text is compiled for each instruction set.

#include <string_view>
#include <tuple>

#include "emulator/functions/cuda/cuda_bessel.hpp"
#include "emulator/functions/cuda/cuda_error_functions.hpp"
#include "emulator/functions/cuda/cuda_exponentials.hpp"
#include "emulator/functions/cuda/cuda_gamma.hpp"
#include "emulator/functions/cuda/cuda_hyperbolics.hpp"
#include "emulator/functions/cuda/cuda_logarithms.hpp"
#include "emulator/functions/cuda/cuda_parts.hpp"
#include "emulator/functions/cuda/cuda_powers.hpp"
#include "emulator/functions/cuda/cuda_remainders.hpp"
#include "emulator/functions/cuda/cuda_trigonometry.hpp"
#include "emulator/functions/kernels/vector_number.hpp"
#include "emulator/functions/unit/instruction_programs.hpp"
#include "emulator/functions/unit/quotients.hpp"
#include "emulator/functions/unit/special_function_forms.hpp"

namespace guardbit::emulator::kernels {

/// A program and its name.
template <class Program>
struct NamedProgram {
  std::string_view name;
  Program program;
};

template <class Program>
NamedProgram(std::string_view, Program) -> NamedProgram<Program>;  // clang 14 deduces none

using enum formats::Rounding;

inline constexpr std::tuple instruction_kernels = {
    NamedProgram{"ex2.approx.f32", FormProgram<mufu::ex2_approx_form>()},
    NamedProgram{"ex2.approx.ftz.f32", FormProgram<mufu::ex2_approx_ftz_form>()},
    NamedProgram{"lg2.approx.f32", FormProgram<mufu::lg2_approx_form>()},
    NamedProgram{"lg2.approx.ftz.f32", FormProgram<mufu::lg2_approx_ftz_form>()},
    NamedProgram{"rcp.approx.f32", FormProgram<mufu::rcp_approx_form>()},
    NamedProgram{"rcp.approx.ftz.f32", FormProgram<mufu::rcp_approx_ftz_form>()},
    NamedProgram{"rsqrt.approx.f32", FormProgram<mufu::rsqrt_approx_form>()},
    NamedProgram{"rsqrt.approx.ftz.f32", FormProgram<mufu::rsqrt_approx_ftz_form>()},
    NamedProgram{"sqrt.approx.f32", FormProgram<mufu::sqrt_approx_form>()},
    NamedProgram{"sqrt.approx.ftz.f32", FormProgram<mufu::sqrt_approx_ftz_form>()},
    NamedProgram{"sin.approx.f32", FormProgram<mufu::sin_approx_form>()},
    NamedProgram{"sin.approx.ftz.f32", FormProgram<mufu::sin_approx_ftz_form>()},
    NamedProgram{"cos.approx.f32", FormProgram<mufu::cos_approx_form>()},
    NamedProgram{"cos.approx.ftz.f32", FormProgram<mufu::cos_approx_ftz_form>()},
    NamedProgram{"tanh.approx.f32", FormProgram<mufu::tanh_approx_form>()},
    NamedProgram{"rcp.rn.f32", Reciprocal<nearest_even>()},
    NamedProgram{"rcp.rz.f32", Reciprocal<toward_zero>()},
    NamedProgram{"rcp.rm.f32", Reciprocal<downward>()},
    NamedProgram{"rcp.rp.f32", Reciprocal<upward>()},
    NamedProgram{"rcp.rn.ftz.f32", Flushed<Reciprocal, nearest_even>()},
    NamedProgram{"rcp.rz.ftz.f32", Flushed<Reciprocal, toward_zero>()},
    NamedProgram{"rcp.rm.ftz.f32", Flushed<Reciprocal, downward>()},
    NamedProgram{"rcp.rp.ftz.f32", Flushed<Reciprocal, upward>()},
    NamedProgram{"sqrt.rn.f32", Root<nearest_even>()},
    NamedProgram{"sqrt.rz.f32", Root<toward_zero>()},
    NamedProgram{"sqrt.rm.f32", Root<downward>()},
    NamedProgram{"sqrt.rp.f32", Root<upward>()},
    NamedProgram{"sqrt.rn.ftz.f32", Flushed<Root, nearest_even>()},
    NamedProgram{"sqrt.rz.ftz.f32", Flushed<Root, toward_zero>()},
    NamedProgram{"sqrt.rm.ftz.f32", Flushed<Root, downward>()},
    NamedProgram{"sqrt.rp.ftz.f32", Flushed<Root, upward>()},
    NamedProgram{"div.rn.f32", Quotient<nearest_even>()},
    NamedProgram{"div.rz.f32", Quotient<toward_zero>()},
    NamedProgram{"div.rm.f32", Quotient<downward>()},
    NamedProgram{"div.rp.f32", Quotient<upward>()},
    NamedProgram{"div.rn.ftz.f32", Flushed<Quotient, nearest_even>()},
    NamedProgram{"div.rz.ftz.f32", Flushed<Quotient, toward_zero>()},
    NamedProgram{"div.rm.ftz.f32", Flushed<Quotient, downward>()},
    NamedProgram{"div.rp.ftz.f32", Flushed<Quotient, upward>()},
    NamedProgram{"div.approx.f32", [](auto x, auto y) { return mufu::div_approx(x, y); }},
    NamedProgram{"div.approx.ftz.f32", [](auto x, auto y) { return mufu::div_approx_ftz(x, y); }},
    NamedProgram{"div.full.f32", [](auto x, auto y) { return mufu::div_full(x, y); }},
    NamedProgram{"div.full.ftz.f32", [](auto x, auto y) { return mufu::div_full_ftz(x, y); }}};

inline constexpr std::tuple cuda_kernels = {
    NamedProgram{"expf", [](auto x) { return cuda_math::expf(x); }},
    NamedProgram{"exp2f", [](auto x) { return cuda_math::exp2f(x); }},
    NamedProgram{"exp10f", [](auto x) { return cuda_math::exp10f(x); }},
    NamedProgram{"expm1f", [](auto x) { return cuda_math::expm1f(x); }},
    NamedProgram{"logf", [](auto x) { return cuda_math::logf(x); }},
    NamedProgram{"log2f", [](auto x) { return cuda_math::log2f(x); }},
    NamedProgram{"log10f", [](auto x) { return cuda_math::log10f(x); }},
    NamedProgram{"log1pf", [](auto x) { return cuda_math::log1pf(x); }},
    NamedProgram{"tanhf", [](auto x) { return cuda_math::tanhf(x); }},
    NamedProgram{"sinhf", [](auto x) { return cuda_math::sinhf(x); }},
    NamedProgram{"coshf", [](auto x) { return cuda_math::coshf(x); }},
    NamedProgram{"asinhf", [](auto x) { return cuda_math::asinhf(x); }},
    NamedProgram{"acoshf", [](auto x) { return cuda_math::acoshf(x); }},
    NamedProgram{"atanhf", [](auto x) { return cuda_math::atanhf(x); }},
    NamedProgram{"sinf", [](auto x) { return cuda_math::sinf(x); }},
    NamedProgram{"cosf", [](auto x) { return cuda_math::cosf(x); }},
    NamedProgram{"tanf", [](auto x) { return cuda_math::tanf(x); }},
    NamedProgram{"asinf", [](auto x) { return cuda_math::asinf(x); }},
    NamedProgram{"acosf", [](auto x) { return cuda_math::acosf(x); }},
    NamedProgram{"atanf", [](auto x) { return cuda_math::atanf(x); }},
    NamedProgram{"atan2f", [](auto x, auto y) { return cuda_math::atan2f(x, y); }},
    NamedProgram{"erff", [](auto x) { return cuda_math::erff(x); }},
    NamedProgram{"erfcf", [](auto x) { return cuda_math::erfcf(x); }},
    NamedProgram{"erfinvf", [](auto x) { return cuda_math::erfinvf(x); }},
    NamedProgram{"normcdff", [](auto x) { return cuda_math::normcdff(x); }},
    NamedProgram{"lgammaf", [](auto x) { return cuda_math::lgammaf(x); }},
    NamedProgram{"powf", [](auto x, auto y) { return cuda_math::powf(x, y); }},
    NamedProgram{"hypotf", [](auto x, auto y) { return cuda_math::hypotf(x, y); }},
    NamedProgram{"sqrtf", [](auto x) { return cuda_math::sqrtf(x); }},
    NamedProgram{"rsqrtf", [](auto x) { return cuda_math::rsqrtf(x); }},
    NamedProgram{"cbrtf", [](auto x) { return cuda_math::cbrtf(x); }},
    NamedProgram{"__expf", [](auto x) { return cuda_math::intrinsic_expf(x); }},
    NamedProgram{"__logf", [](auto x) { return cuda_math::intrinsic_logf(x); }},
    NamedProgram{"__sinf", [](auto x) { return mufu::sin_approx(x); }},
    NamedProgram{"__cosf", [](auto x) { return mufu::cos_approx(x); }},
    NamedProgram{"sinpif", [](auto x) { return cuda_math::sinpif(x); }},
    NamedProgram{"cospif", [](auto x) { return cuda_math::cospif(x); }},
    NamedProgram{"erfcxf", [](auto x) { return cuda_math::erfcxf(x); }},
    NamedProgram{"erfcinvf", [](auto x) { return cuda_math::erfcinvf(x); }},
    NamedProgram{"normcdfinvf", [](auto x) { return cuda_math::normcdfinvf(x); }},
    NamedProgram{"tgammaf", [](auto x) { return cuda_math::tgammaf(x); }},
    NamedProgram{"rcbrtf", [](auto x) { return cuda_math::rcbrtf(x); }},
    NamedProgram{"rhypotf", [](auto x, auto y) { return cuda_math::rhypotf(x, y); }},
    NamedProgram{"__exp10f", [](auto x) { return cuda_math::intrinsic_exp10f(x); }},
    NamedProgram{"__log2f", [](auto x) { return mufu::lg2_approx(x); }},
    NamedProgram{"__log10f", [](auto x) { return cuda_math::intrinsic_log10f(x); }},
    NamedProgram{"__tanf", [](auto x) { return cuda_math::intrinsic_tanf(x); }},
    NamedProgram{"__tanhf", [](auto x) { return mufu::tanh_approx(x); }},
    NamedProgram{"__powf", [](auto x, auto y) { return cuda_math::intrinsic_powf(x, y); }},
    NamedProgram{"__fdividef", [](auto x, auto y) { return mufu::div_approx(x, y); }},
    NamedProgram{"x / y", [](auto x, auto y) { return x / y; }},
    NamedProgram{"fdividef", [](auto x, auto y) { return x / y; }},
    NamedProgram{"1 / x", [](auto x) { return decltype(x)(1) / x; }},
    NamedProgram{"j0f", [](auto x) { return cuda_math::j0f(x); }},
    NamedProgram{"j1f", [](auto x) { return cuda_math::j1f(x); }},
    NamedProgram{"y0f", [](auto x) { return cuda_math::y0f(x); }},
    NamedProgram{"y1f", [](auto x) { return cuda_math::y1f(x); }},
    NamedProgram{"cyl_bessel_i0f", [](auto x) { return cuda_math::cyl_bessel_i0f(x); }},
    NamedProgram{"cyl_bessel_i1f", [](auto x) { return cuda_math::cyl_bessel_i1f(x); }},
    NamedProgram{"__frsqrt_rn", [](auto x) { return cuda_math::rounded_rsqrtf(x); }},
    NamedProgram{"__saturatef", [](auto x) { return cuda_math::saturatef(x); }},
    NamedProgram{"fabsf", [](auto x) { return abs(x); }},
    NamedProgram{"rintf", [](auto x) { return rint(x); }},
    NamedProgram{"nearbyintf", [](auto x) { return rint(x); }},
    NamedProgram{"roundf", [](auto x) { return cuda_math::roundf(x); }},
    NamedProgram{"truncf", [](auto x) { return trunc(x); }},
    NamedProgram{"floorf", [](auto x) { return cuda_math::floorf(x); }},
    NamedProgram{"ceilf", [](auto x) { return cuda_math::ceilf(x); }},
    NamedProgram{"logbf", [](auto x) { return cuda_math::logbf(x); }},
    NamedProgram{"fdimf", [](auto x, auto y) { return cuda_math::fdimf(x, y); }},
    NamedProgram{"fmaxf", [](auto x, auto y) { return cuda_math::fmaxf(x, y); }},
    NamedProgram{"fminf", [](auto x, auto y) { return cuda_math::fminf(x, y); }},
    NamedProgram{"copysignf", [](auto x, auto y) { return copysign(x, y); }},
    NamedProgram{"nextafterf", [](auto x, auto y) { return cuda_math::nextafterf(x, y); }},
    NamedProgram{"fmodf", [](auto x, auto y) { return cuda_math::fmodf(x, y); }},
    NamedProgram{"remainderf", [](auto x, auto y) { return cuda_math::remainderf(x, y); }}};

}  // namespace guardbit::emulator::kernels
