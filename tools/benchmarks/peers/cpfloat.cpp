// CPFloat is C: its pointers to void need -fpermissive here.
#include <cpfloat_binary32.h>

#include "tools/benchmarks/peers.hpp"

namespace guardbit::tools::peers {

namespace {

/// A format's numbers, in FP32 still.
template <int Precision, int LowestExponent, int HighestExponent>
void convert(const float* from, void* to, std::size_t count) {
  static optstruct* const options = [] {
    optstruct* const made = init_optstruct();
    made->precision = Precision;
    made->emin = LowestExponent;
    made->emax = HighestExponent;
    made->explim = CPFLOAT_EXPRANGE_TARG;
    made->subnormal = CPFLOAT_SUBN_USE;
    made->round = CPFLOAT_RND_NE;
    made->infinity = CPFLOAT_INF_USE;
    made->flip = CPFLOAT_SOFTERR_NO;
    // Formats with FP32's exponents are rounded many times as fast without saturation.
    made->saturation = HighestExponent == 127 ? CPFLOAT_SAT_NO : CPFLOAT_SAT_USE;
    return made;
  }();
  cpfloatf(static_cast<float*>(to), from, count, options);
}

}  // namespace

ConversionPeer cpfloat(std::string_view to) {
  if (to == "bf16") return {"CPFloat", sizeof(float), convert<8, -126, 127>};
  if (to == "fp16") return {"CPFloat", sizeof(float), convert<11, -14, 15>};
  if (to == "e4m3") return {"CPFloat", sizeof(float), convert<4, -6, 8>};
  if (to == "e5m2") return {"CPFloat", sizeof(float), convert<3, -14, 15>};
  return {};
}

}  // namespace guardbit::tools::peers
