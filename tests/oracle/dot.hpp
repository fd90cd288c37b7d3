#pragma once

#include <vector>

#include "tests/oracle/arithmetic.hpp"

/// One output element of a matrix instruction, from the codes of its operands: the rules of
/// NUMERICS.md sections 1 and 3 in exact arithmetic. Elements go in ascending k; sparse operands
/// are gathered first.
namespace guardbit::oracle {

struct Vector {
  FormatParameters format;
  std::vector<std::uint64_t> codes;
};
struct Scalar {
  FormatParameters format;
  std::uint64_t code = 0;
};

/// The 19-bit code of the tf32 number that the unit sees in an fp32 register: the low 13 bits are
/// ignored.
constexpr std::uint64_t tf32_from_register(std::uint64_t fp32_code) { return fp32_code >> 13; }

/// The tensor core's fused block, section 1.1.
struct FusedRule {
  int block = 0;          // L, products that share one alignment
  int kept_bits = 0;      // F, fraction bits kept below the largest exponent
  int zero_exponent = 0;  // e0, the exponent of a zero
  FormatParameters result = fp32;
  /// Fraction bits of the result; fewer than the format has for E8M13 (13 bits in an fp32 word).
  int result_fraction_bits = 23;
  Rounding rounding = toward_zero;
  std::uint64_t nan = 0x7fffffff;
  bool underflow_keeps_sign = false;  // a negative sum that rounds to zero gives -0
};
std::uint64_t nvidia_fused(const FusedRule& rule, const Vector& a, const Vector& b,
                           const Scalar& c);
/// mxf8f6f4: one scale (e8m0) of a and b per `scale_block` elements shifts the exponents of the
/// products.
std::uint64_t nvidia_scaled(const FusedRule& rule, const Vector& a, const Vector& b,
                            const Vector& a_scales, const Vector& b_scales, int scale_block,
                            const Scalar& c);
/// mxf4, mxf4nvf4: groups of `group` products summed exactly, then scaled (e8m0 or ue4m3) and
/// aligned by the exponents of their scales alone.
std::uint64_t nvidia_grouped(const FusedRule& rule, int group, const Vector& a, const Vector& b,
                             const Vector& a_scales, const Vector& b_scales, int scale_block,
                             const Scalar& c);

/// A chain of IEEE fused multiply-adds, c first, k ascending, each rounded to `result`. With
/// flushes, subnormal operands and addends count as +0 and subnormal results become zeros of their
/// sign.
std::uint64_t fma_chain(const FormatParameters& result, const Vector& a, const Vector& b,
                        const Scalar& c, const Rounding& rounding = nearest_even,
                        bool flush_inputs = false, bool flush_outputs = false);

/// Exact total of integer products and c, then wrapped to 32 bits or clamped once.
std::uint64_t integer_dot(const Vector& a, const Vector& b, const Scalar& c, bool satfinite);
enum class BitOperation { xor_popc, and_popc };
/// c plus the number of ones of a op b, wrapped to 32 bits; one bit per element.
std::uint64_t bit_dot(BitOperation operation, const Vector& a, const Vector& b, const Scalar& c);

/// Instructions that ptxas replaces by others (section 1.5).
enum class Composition { chained, parallel };  // ptxas 13.0 and 12.4
/// FP8 mma.sync where it is not native: elements k%4 in {0,1} and {2,3} through `half`, the f16
/// rule of the machine, then one sum with c (and, parallel, one of the halves) rounded to nearest.
std::uint64_t fp8_by_halves(const FusedRule& half, Composition composition, const Vector& a,
                            const Vector& b, const Scalar& c);
/// mma.m8n8k4 f16 on sm_80 and later, by CUDA cores; the result is fp32 or fp16.
std::uint64_t m8n8k4_to_fp32(const Vector& a, const Vector& b, const Scalar& c);
std::uint64_t m8n8k4_to_fp16(const Vector& a, const Vector& b, const Scalar& c);

}  // namespace guardbit::oracle
