#include <cstdint>

#include "emulator/gemm/gemm.hpp"
#include "tests/catch.hpp"
#include "tests/emulator/gemm/gemm_inputs.hpp"

namespace guardbit::tests {
namespace {

using emulator::CodeMatrix;
using emulator::GemmPlan;
using emulator::GemmProblem;

TEST_CASE("a convolution is the sum over its filter") {
  Random random(83);
  emulator::Convolution x;
  x.n = 2, x.c = 6, x.h = 7, x.w = 6, x.o = 4, x.r = 3, x.s = 2, x.groups = 2;
  x.padding_h = 1, x.padding_w = 0, x.stride_h = 2, x.stride_w = 1, x.dilation_h = 1,
  x.dilation_w = 2;
  x.p = (x.h + 2 - 2 - 1) / 2 + 1;
  x.q = (x.w - 2 - 1) / 1 + 1;
  const CodeMatrix a = random_matrix(formats::int8, 1, 1, x.n * x.c * x.h * x.w, random);
  const CodeMatrix b = random_matrix(formats::int8, 1, 1, x.o * 3 * x.r * x.s, random);
  const auto value = [](const CodeMatrix& m, std::int64_t at) {
    return static_cast<std::int64_t>(static_cast<std::int8_t>(m[at]));
  };
  using Walk = emulator::ConvolutionOrder::Walk;
  for (const emulator::ConvolutionOrder order : {emulator::ConvolutionOrder{Walk::rsc, 0, 1},
                                                 {Walk::crs, 0, 1},
                                                 {Walk::src, 0, 8},
                                                 {Walk::rsc, 2, 1}}) {
    const GemmProblem problem = lower(x, a, b, order);
    GemmPlan plan = emulator::parse_plan("simt/mad.int32 compute=int32 d=int32", "test");
    const CodeMatrix d = raise_output(x, execute(plan, problem));
    CHECK(lower_output(x, d).bytes == execute(plan, problem).bytes);
    std::int64_t wrong = 0, at = 0;
    for (std::int64_t n = 0; n < x.n; ++n)
      for (std::int64_t o = 0; o < x.o; ++o)
        for (std::int64_t p = 0; p < x.p; ++p)
          for (std::int64_t q = 0; q < x.q; ++q, ++at) {
            std::int64_t sum = 0;
            for (std::int64_t c = 0; c < 3; ++c)
              for (std::int64_t r = 0; r < x.r; ++r)
                for (std::int64_t s = 0; s < x.s; ++s) {
                  const std::int64_t h = p * 2 - 1 + r, w = q + 2 * s;
                  if (h < 0 || h >= x.h || w >= x.w) continue;
                  sum += value(a, ((n * x.c + o / 2 * 3 + c) * x.h + h) * x.w + w) *
                         value(b, ((o * 3 + c) * x.r + r) * x.s + s);
                }
            wrong += static_cast<std::uint32_t>(sum) != d[at] ? 1 : 0;
          }
    CHECK(wrong == 0);
  }
}

}  // namespace
}  // namespace guardbit::tests
