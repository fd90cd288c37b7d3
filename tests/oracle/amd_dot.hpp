#pragma once

#include "tests/oracle/dot.hpp"

/// AMD's matrix units as NUMERICS.md section 4.1 words them. Where it is silent this is our literal
/// reading: special values follow IEEE 754, a NaN has any payload, an exactly zero total is +0 and
/// a negative total that underflows keeps its sign. FP32 and FP64 are `fma_chain`, int8 is
/// `integer_dot`.
namespace guardbit::oracle {

/// CDNA1: blocks of `block` products and c, summed without error, rounded once to fp32.
std::uint64_t cdna1_exact(int block, const Vector& a, const Vector& b, const Scalar& c);

/// CDNA2: every product and every sum is an fp32 operation (nearest even) whose subnormal result
/// becomes a zero of its sign; subnormal a, b and initial c count as +0 (zeros keep their sign).
/// Blocks of 4: c + ((p0+p1) + (p2+p3)); blocks of 2: c + (p0+p1).
std::uint64_t cdna2_pairwise(int block, const Vector& a, const Vector& b, const Scalar& c);

/// CDNA3's truncating blocks; the defaults are the measured parameters.
struct Cdna3Rule {
  int block = 8;              // 4 xf32, 8 fp16 and bf16, 16 FP8
  int product_bits = 24;      // kept of each product, toward zero
  int sum_bits = 32;          // kept of the sum of products beside c, downward
  int addend_bits = 24;       // kept of c, downward
  int result_bits = 31;       // kept of the normalised total, downward, before the rounding to fp32
  bool even_and_odd = false;  // FP8: elements of even and of odd index are summed apart
};
std::uint64_t cdna3_truncated(const Cdna3Rule& rule, const Vector& a, const Vector& b,
                              const Scalar& c);

/// RDNA3 and RDNA4 as NUMERICS.md section 4.2 words them.
struct RdnaRule {
  bool rdna3 = true;  // else RDNA4
  int block = 2;      // products of a step
  /// RDNA4: neighbours that share a grid before they meet c
  int group = 2;
  /// RDNA4 in waves of 32: k = 8 to 11 before 4 to 7
  bool swapped = false;
  FormatParameters result = fp32;
};
std::uint64_t rdna_dot(const RdnaRule& rule, const Vector& a, const Vector& b, const Scalar& c);

}  // namespace guardbit::oracle
