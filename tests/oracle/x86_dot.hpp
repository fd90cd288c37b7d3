#pragma once

#include "tests/oracle/dot.hpp"

/// The matrix units of x86 as Intel's SDM writes them (NUMERICS.md section 5), with the sign and
/// payload of every NaN.
namespace guardbit::oracle {

/// DAZ: subnormal operands are zeros of their sign. FTZ: results that are tiny after rounding (IEEE
/// 754-2019 section 7.5) are.
struct X86Mode {
  bool daz = false, ftz = false;
};

/// c + sum of a * b, one fused multiply-add after the other, k ascending.
std::uint64_t x86_fma_chain(const FormatParameters& result, const X86Mode& mode, const Vector& a,
                            const Vector& b, const Scalar& c);

/// VDPBF16PS: of every pair the odd product first.
std::uint64_t x86_bf16_lane(const Vector& a, const Vector& b, const Scalar& c);

/// TDPBF16PS, TDPFP16PS: chains of the even and of the odd products from +0, their sum, then c plus
/// that. `chain` is the mode of the chains, the two additions have DAZ and FTZ.
std::uint64_t x86_tile(const X86Mode& chain, const Vector& a, const Vector& b, const Scalar& c);

}  // namespace guardbit::oracle
