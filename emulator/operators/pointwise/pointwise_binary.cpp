#include <cmath>
#include <limits>

#include "emulator/functions/cuda/cuda_exponentials.hpp"
#include "emulator/functions/cuda/cuda_logarithms.hpp"
#include "emulator/functions/cuda/cuda_powers.hpp"
#include "emulator/functions/cuda/cuda_trigonometry.hpp"
#include "emulator/operators/pointwise/pointwise_program.hpp"

namespace guardbit::emulator::operators {
namespace {

using Number = HostNumber;
using P = const Parameters&;

bool is_nan(Number x) { return x.number() != x.number(); }
Number truth(bool x) { return x ? 1.0F : 0.0F; }

/// Exact, as C's.
Number remainder_of(Number x, Number y) { return std::fmod(x.number(), y.number()); }

Number python_remainder(Number x, Number y) {
  const Number rest = remainder_of(x, y);
  return !(rest == 0) && (y < 0) != (rest < 0) ? rest + y : rest;
}

/// What a kernel that stores a step in the result's type makes of it.
Number stored(P p, Number x) { return rounded_to(p.type, x.number()); }

/// The quotient that goes with python_remainder; `whole` is (x - remainder) / y and `quotient` x /
/// y as the kernel has them.
Number floor_quotient(Number x, Number y, Number whole, Number quotient, P p) {
  const Number rest = remainder_of(x, y);
  if (y == 0) return quotient;
  if (!(rest == 0) && (y < 0) != (rest < 0)) whole = whole - 1;
  if (whole == 0) return copysign(Number(0), quotient);
  const Number floor = stored(p, std::floor(whole.number()));
  return whole - floor > 0.5F ? floor + 1 : floor;
}

/// Zeros of both signs: the positive one is the greater.
Number greater(Number x, Number y) {
  if (is_nan(x)) return x;
  if (is_nan(y)) return y;
  if (x == y) return std::signbit(x.number()) ? y : x;
  return x > y ? x : y;
}
Number lesser(Number x, Number y) {
  if (is_nan(x)) return x;
  if (is_nan(y)) return y;
  if (x == y) return std::signbit(x.number()) ? x : y;
  return x < y ? x : y;
}

Number lerp(Number x, Number y, Number weight) {
  const Number way = y - x;
  return abs(weight) < 0.5F ? fma(weight, way, x) : fma(-way, 1 - weight, y);
}

Number log_add_exp(Number x, Number y) {
  if (std::isinf(x.number()) && x == y) return x;
  const Number top = greater(x, y);
  return top + cuda_math::log1pf(cuda_math::expf(-abs(x - y)));
}

const std::array table = {
    pointwise("add", "fma(y, p, x), p is alpha",
              [](Number x, Number y, P p) { return fma(y, p.numbers[0], x); }),
    pointwise("sub", "fma(y, -p, x), p is alpha",
              [](Number x, Number y, P p) { return fma(y, -p.numbers[0], x); }),
    pointwise("mul", "x y", [](Number x, Number y, P) { return x * y; }),
    pointwise("div", "x / y", [](Number x, Number y, P) { return x / y; }),
    pointwise("div_by_number", "x p, p is 1 / y rounded once",
              [](Number x, P p) { return x * p.numbers[0]; }),
    pointwise("div_trunc", "x / y, stored in the result's type, cut to an integer",
              [](Number x, Number y, P p) { return trunc(stored(p, x / y)); }),
    pointwise("div_by_number_trunc", "x p cut to an integer, p is 1 / y in FP32",
              [](Number x, P p) { return trunc(x * p.numbers[0]); }),
    pointwise("div_floor",
              "(x - fmodf(x, y)) / y, corrected; the integer stored in the result's type",
              [](Number x, Number y, P p) {
                return floor_quotient(x, y, (x - remainder_of(x, y)) / y, x / y, p);
              }),
    pointwise("div_by_number_floor",
              "(x - fmodf(x, q)) p, corrected, p is 1 / q in FP32; the integer stored in the "
              "result's type",
              [](Number x, P p) {
                const Number y = p.numbers[1], inverse = p.numbers[0];
                return floor_quotient(x, y, (x - remainder_of(x, y)) * inverse, x * inverse, p);
              }),
    pointwise("pow", "powf(x, y)", [](Number x, Number y, P) { return cuda_math::powf(x, y); }),
    pointwise("atan2", "atan2f(x, y)",
              [](Number x, Number y, P) { return cuda_math::atan2f(x, y); }),
    pointwise("hypot", "hypotf(x, y)",
              [](Number x, Number y, P) { return cuda_math::hypotf(x, y); }),
    pointwise("fmod", "fmodf(x, y)", [](Number x, Number y, P) { return remainder_of(x, y); }),
    pointwise("remainder", "fmodf(x, y), y added where the signs differ",
              [](Number x, Number y, P) { return python_remainder(x, y); }),
    choosing_in_fp32("copysign", "|x| with the sign of y",
                     [](Number x, Number y, P) { return copysign(x, y); }),
    choosing_in_fp32("xlogy", "0 where x is 0, else x logf(y)",
                     [](Number x, Number y, P) -> Number {
                       if (is_nan(y)) return std::numeric_limits<float>::quiet_NaN();
                       return x == 0 ? Number(0) : computed_number(x * cuda_math::logf(y));
                     }),
    pointwise("logaddexp", "max(x, y) + log1pf(expf(-|x - y|))",
              [](Number x, Number y, P) { return log_add_exp(x, y); }),
    pointwise("logaddexp2", "fma(log1pf(exp2f(-|x - y|)), 1 / ln(2), max(x, y))",
              [](Number x, Number y, P) -> Number {
                if (std::isinf(x.number()) && x == y) return x;
                return fma(cuda_math::log1pf(cuda_math::exp2f(-abs(x - y))), 0x1.715476p+0F,
                           greater(x, y));
              }),
    choosing("heaviside", "y where x is 0, else 1 above it and 0 below",
             [](Number x, Number y, P) { return x == 0 ? y : truth(x > 0); }),
    choosing_in_fp32("special_xlog1py", "0 where x is 0, else x log1pf(y)",
                     [](Number x, Number y, P) -> Number {
                       if (is_nan(y)) return std::numeric_limits<float>::quiet_NaN();
                       return x == 0 ? Number(0) : computed_number(x * cuda_math::log1pf(y));
                     }),
    pointwise("lerp", "|z| < 0.5: fma(z, y - x, x), else fma(-(y - x), 1 - z, y)",
              [](Number x, Number y, Number z, P) { return lerp(x, y, z); }),
    pointwise("lerp_by_number", "as lerp, z is p",
              [](Number x, Number y, P p) { return lerp(x, y, p.numbers[0]); }),
    pointwise("addcmul", "fma(p, y z, x); p = 1: fma(y, z, x)",
              [](Number x, Number y, Number z, P p) {
                return p.numbers[0] == 1 ? fma(y, z, x) : fma(p.numbers[0], y * z, x);
              }),
    pointwise("addcdiv", "fma(p, y / z, x)",
              [](Number x, Number y, Number z, P p) { return fma(p.numbers[0], y / z, x); }),
    choosing("maximum", "the greater; a NaN wins",
             [](Number x, Number y, P) { return greater(x, y); }),
    choosing("minimum", "the lesser; a NaN wins",
             [](Number x, Number y, P) { return lesser(x, y); }),
    pointwise("fmax", "the greater; a NaN loses",
              [](Number x, Number y, P) { return is_nan(x)   ? y
                                                 : is_nan(y) ? x
                                                             : greater(x, y); }),
    pointwise("fmin", "the lesser; a NaN loses",
              [](Number x, Number y, P) { return is_nan(x)   ? y
                                                 : is_nan(y) ? x
                                                             : lesser(x, y); }),
    choosing("clamp", "max(x, p), then min with q; a NaN stays",
             [](Number x, P p) {
               return is_nan(x) ? x : lesser(greater(x, p.numbers[0]), p.numbers[1]);
             }),
    choosing("clamp_by_tensors", "max(x, y), then min with z; a NaN stays",
             [](Number x, Number y, Number z, P) { return lesser(greater(x, y), z); }),
    choosing("where", "y where x is true, else z",
             [](Number x, Number y, Number z, P) { return x == 0 ? z : y; }),
    choosing("masked_fill", "p where y is true, else x",
             [](Number x, Number y, P p) { return y == 0 ? x : Number(p.numbers[0]); }),
    comparing("eq", "x = y", [](Number x, Number y, P) { return truth(x == y); }),
    comparing("ne", "x /= y", [](Number x, Number y, P) { return truth(!(x == y)); }),
    comparing("lt", "x < y", [](Number x, Number y, P) { return truth(x < y); }),
    comparing("le", "x <= y", [](Number x, Number y, P) { return truth(x <= y); }),
    comparing("gt", "x > y", [](Number x, Number y, P) { return truth(x > y); }),
    comparing("ge", "x >= y", [](Number x, Number y, P) { return truth(x >= y); }),
    comparing("logical_and", "x and y",
              [](Number x, Number y, P) { return truth(!(x == 0) && !(y == 0)); }),
    comparing("logical_or", "x or y",
              [](Number x, Number y, P) { return truth(!(x == 0) || !(y == 0)); }),
    comparing("logical_xor", "either x or y",
              [](Number x, Number y, P) { return truth((x == 0) != (y == 0)); }),
};

}  // namespace

std::span<const PointwiseOperator> binary_operators() { return table; }

}  // namespace guardbit::emulator::operators
