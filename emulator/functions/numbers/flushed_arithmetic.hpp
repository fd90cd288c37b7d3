#pragma once

#if defined(__x86_64__)
#include <immintrin.h>

namespace guardbit::emulator {

/// While one lives, this thread's SSE units take subnormal operands as zeros and give zeros for
/// results below the normal range (MXCSR's DAZ and FTZ). The arithmetic has to stand in a function
/// that is not inlined: compilers move it past the change.
class FlushedArithmetic {
 public:
  FlushedArithmetic() : before_(_mm_getcsr()) { _mm_setcsr(before_ | 0x8040U); }
  ~FlushedArithmetic() { _mm_setcsr(before_); }
  FlushedArithmetic(const FlushedArithmetic&) = delete;
  FlushedArithmetic& operator=(const FlushedArithmetic&) = delete;

 private:
  unsigned before_;
};

}  // namespace guardbit::emulator
#endif
